// The work of writing a checkpoint, cut into chunks that threads take one after the other; and the masters' shards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/synthetic/float_format.hpp"
#include "tools/synthetic/shard_writer.hpp"

namespace deltarelay::synthetic {

/// Elements per chunk: half a megabyte of BF16 and its masters fit a second-level cache.
inline constexpr std::uint64_t chunk_elements = 256 * 1024;

struct Chunk {
  std::size_t shard = 0, tensor = 0;   ///< as in the plan
  std::uint64_t first = 0, count = 0;  ///< in units of the element width
};

[[nodiscard]] inline std::uint64_t elements_of(const codec::TensorSpec& tensor) {
  return tensor.bytes / codec::element_width(tensor.dtype);
}

/// Every tensor of the plan, in its order; tensors without bytes have no chunk.
[[nodiscard]] inline std::vector<Chunk> chunks_of(const std::vector<ShardPlan>& plan) {
  std::vector<Chunk> chunks;
  for (std::size_t shard = 0; shard < plan.size(); ++shard) {
    for (std::size_t tensor = 0; tensor < plan[shard].tensors.size(); ++tensor) {
      const std::uint64_t elements = elements_of(plan[shard].tensors[tensor]);
      for (std::uint64_t at = 0; at < elements; at += chunk_elements)
        chunks.push_back({shard, tensor, at, std::min(chunk_elements, elements - at)});
    }
  }
  return chunks;
}

inline constexpr std::size_t no_master = static_cast<std::size_t>(-1);

/// Where the masters of a checkpoint's tensors go: one F32 shard per shard that has any.
struct MastersPlan {
  struct Place {
    std::size_t shard = no_master, tensor = no_master;
  };
  std::vector<ShardPlan> shards;
  std::vector<std::vector<Place>> places;  ///< per shard and tensor of the checkpoint

  explicit MastersPlan(const std::vector<ShardPlan>& checkpoint) : places(checkpoint.size()) {
    for (std::size_t shard = 0; shard < checkpoint.size(); ++shard) {
      ShardPlan masters{checkpoint[shard].name, {}};
      for (const codec::TensorSpec& tensor : checkpoint[shard].tensors) {
        const bool kept = has_masters(tensor.dtype);
        places[shard].push_back(kept ? Place{shards.size(), masters.tensors.size()} : Place{});
        if (kept) masters.tensors.push_back({tensor.name, codec::DType::F32, tensor.shape, 2 * tensor.bytes});
      }
      if (!masters.tensors.empty()) shards.push_back(std::move(masters));
    }
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const ShardPlan& shard : shards)
      for (const codec::TensorSpec& tensor : shard.tensors) sum += tensor.bytes;
    return sum;
  }
};

}  // namespace deltarelay::synthetic
