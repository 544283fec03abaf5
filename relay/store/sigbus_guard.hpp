// Turns SIGBUS on a mapped file into an error: a file truncated under us, or a disk full behind a mapping, must not end the
// process.
//
// Only whole copies and hashes of trivial memory run under the guard: the jump out of the handler skips destructors. So the
// interface is two operations and not "run this function". A SIGBUS elsewhere, or outside the guarded range, still aborts
// with a core dump. Any thread; nothing to set up (the handler is installed at first use).
#pragma once

#include "codec/digest.hpp"
#include "codec/types.hpp"
#include "relay/store/store_error.hpp"

namespace deltarelay::relay {

/// Copies `from` to `to` (same size, not overlapping), either of which may be mapped. False: a page could not be had, `to`
/// may be partly written and `*failed_at` is the offset of the page within the range, as far as the system tells.
[[nodiscard]] bool guarded_copy(codec::MutableBytes to, codec::Bytes from, std::size_t* failed_at = nullptr) noexcept;

/// digest_of() over mapped memory.
[[nodiscard]] bool guarded_digest(codec::Bytes data, codec::Digest& out, std::size_t* failed_at = nullptr) noexcept;

}  // namespace deltarelay::relay
