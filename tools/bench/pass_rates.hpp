// How fast each pass goes on this machine, per core, all measured in one run so that they can be divided by each other.
//
// Passes take turns, round after round, so that what disturbs the machine disturbs all alike, and in an order that
// changes with the round: the pass that always ran after the dense ones, compare, came out at half to nine tenths of
// its rate, and everything that is divided by it too good. Of each batch the best time over all rounds counts, by the
// processor's time of the thread: batches differ in how much of them changed, so the best batch alone would flatter.
// Each thread has batches of its own and all threads are in the same pass at once, so with several of them the rates
// tell what a core gets when memory is shared.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tools/bench/trained_pair.hpp"

namespace deltarelay::bench {

enum class Pass : std::uint8_t { compare, copy, digest, scan, encode, decode, apply, encode_dense, decode_dense };
inline constexpr std::size_t pass_count = 9;
/// As scripts read it: compare, memcpy, digest, scan, encode, decode, apply, dense_encode, dense_decode.
[[nodiscard]] std::string_view pass_name(Pass pass) noexcept;

struct PassRates {
  std::array<double, pass_count> bytes_per_second{};  ///< of dense, per core
  std::uint64_t rounds = 0;
  std::uint64_t dense_payload_bytes = 0;  ///< what encode_dense makes of the next checkpoint

  [[nodiscard]] double of(Pass pass) const noexcept { return bytes_per_second[static_cast<std::size_t>(pass)]; }
  [[nodiscard]] double ratio(Pass pass, Pass baseline) const noexcept { return of(pass) / of(baseline); }
};

struct RateOptions {
  unsigned threads = 1;
  double seconds = 5;  ///< stops after the first round that ends later than this; three rounds at least
};

/// REQUIRES 1 <= threads <= pair.batches().size(). Throws std::runtime_error when a block did not decode to its target
/// or the image does not hold what was applied to it.
[[nodiscard]] PassRates measure_passes(const TrainedPair& pair, const RateOptions& options);

}  // namespace deltarelay::bench
