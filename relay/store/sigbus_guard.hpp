// Turns a SIGBUS on a mapped file (truncated, bad sector, full disk) into a failed copy instead of the end of the process.
//
// Only a plain copy is guarded: leaving it by a jump skips no destructor. So callers hash and decode from private memory.
#pragma once

#include "codec/types.hpp"

namespace deltarelay::relay {

/// Installs the handler; once per process is enough, more often is harmless. Thread-safe.
void install_sigbus_guard();

/// Copies `from` to `to`; false when a page of either could not be reached, then `to` is partly written.
/// REQUIRES install_sigbus_guard(), equal sizes, no overlap. Thread-safe.
[[nodiscard]] bool guarded_copy(codec::MutableBytes to, codec::Bytes from) noexcept;

}  // namespace deltarelay::relay
