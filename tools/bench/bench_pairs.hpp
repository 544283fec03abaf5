// The pairs and memory that the programs of Google Benchmark share, made at their first use and kept until the end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "tools/bench/live_image.hpp"
#include "tools/bench/trained_pair.hpp"

namespace deltarelay::bench {

/// The pair whose step changes `percent` of the elements.
inline const TrainedPair& changed_pair(std::int64_t percent) {
  static Workshop workshop{{}};
  static std::map<std::int64_t, std::unique_ptr<const TrainedPair>> made;
  auto& slot = made[percent];
  if (!slot) slot = std::make_unique<const TrainedPair>(workshop.pair(static_cast<double>(percent) / 100));
  return *slot;
}

inline LiveImage& live_image(std::int64_t percent) {
  static std::map<std::int64_t, std::unique_ptr<LiveImage>> made;
  auto& slot = made[percent];
  if (!slot) slot = std::make_unique<LiveImage>(changed_pair(percent));
  return *slot;
}

/// Memory as large as the checkpoint to write to, its pages mapped.
inline codec::MutableBytes spare_memory() {
  static std::vector<std::byte> memory(static_cast<std::size_t>(changed_pair(3).bytes()));
  return memory;
}

}  // namespace deltarelay::bench
