// `bench codec`: rates of the codec beside those of memory, and payloads beside their bounds, on synthetic steps.
#pragma once

#include <cstdint>
#include <vector>

namespace deltarelay::relayctl {

struct Context;

struct BenchCodecOptions {
  std::uint64_t bytes = 0;
  std::vector<double> changes;  ///< shares of the elements, one table each
  std::uint64_t seed = 1;
  unsigned threads = 1;
  double seconds = 0;  ///< per change
};

/// Prints the result or the error through the context and returns the exit code.
int bench_codec(const Context& context, const BenchCodecOptions& options);

}  // namespace deltarelay::relayctl
