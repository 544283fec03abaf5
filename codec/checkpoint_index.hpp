// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

struct CheckpointIndex {
  std::vector<std::string> shards;                        ///< file names, sorted
  std::map<std::string, std::uint32_t, std::less<>> map;  ///< tensor name to place in `shards`
};

/// Parses the index. Shard names are plain names ending in .safetensors; anything else could leave the directory. All
/// refusals are index_invalid or too_many_tensors, without `where`.
[[nodiscard]] Checked<CheckpointIndex> parse_checkpoint_index(std::string_view json);

}  // namespace deltarelay::codec
