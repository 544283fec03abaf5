// The four acts of `relayctl delta` behind their options; delta_commands.cpp registers them.
//
// Each prints its result or its error through the context and returns the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codec/limits.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

class Pace;

struct DeltaOptions {
  std::string base, next;       ///< encode, stats
  std::string file;             ///< the delta file, of all but stats
  std::string image;            ///< apply
  std::string key, verify_key;  ///< PEM; empty: unsigned, not verified
  std::string mesh_id;          ///< 32 hex digits; empty: all zero
  std::optional<std::uint64_t> version, base_version;
  std::uint64_t epoch = 0;
  std::uint32_t block_bytes = codec::block_bytes_default;
  unsigned threads = 1;
};

/// Writes the delta from `base` to `next` to `file`, under its name only when it is whole.
int delta_encode(const Context& context, const DeltaOptions& options);
/// Turns `image` from the file's base into its version by the block rule; may be repeated after any interruption.
int delta_apply(const Context& context, Pace& pace, const DeltaOptions& options);
/// Reads all of `file` and says what it holds.
int delta_info(const Context& context, const DeltaOptions& options);
/// What changed from `base` to `next`, and what it costs to send.
int delta_stats(const Context& context, const DeltaOptions& options);

}  // namespace deltarelay::relayctl
