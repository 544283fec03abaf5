// Writes the safetensors shards of a checkpoint in any order and from several threads, and then its index.
//
// Files are made with their headers and their full size at once; write() fills ranges of tensors. A file is opened for
// each write: with chunks of half a megabyte that costs nothing, and a thousand shards need no thousand descriptors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "codec/errc.hpp"
#include "codec/layout.hpp"
#include "codec/types.hpp"

namespace deltarelay::synthetic {

struct ShardPlan {
  std::string name;                        ///< of the file
  std::vector<codec::TensorSpec> tensors;  ///< in the order of their bytes
};

/// Cuts tensors, in their order, into `count` shards of about equal bytes, named as HuggingFace names them. Within a
/// shard wider elements come first, so that all are aligned. REQUIRES 1 <= count <= tensors.size().
[[nodiscard]] std::vector<ShardPlan> plan_shards(const std::vector<codec::TensorSpec>& tensors, std::size_t count);

/// Shards when nobody asked for a number: one per GiB, and at least two if there are two tensors.
[[nodiscard]] std::size_t default_shards(std::uint64_t bytes, std::size_t tensors);

class ShardWriter {
 public:
  /// `directory` is there and empty.
  [[nodiscard]] static codec::Checked<ShardWriter> create(std::filesystem::path directory,
                                                          std::vector<ShardPlan> shards);

  [[nodiscard]] const std::vector<ShardPlan>& shards() const noexcept { return shards_; }
  /// Thread-safe. REQUIRES a range within the tensor.
  [[nodiscard]] codec::Checked<void> write(std::size_t shard, std::size_t tensor, std::uint64_t offset,
                                           codec::Bytes bytes) const;
  /// A small file beside the shards.
  [[nodiscard]] codec::Checked<void> add_file(std::string_view name, codec::Bytes content) const;
  /// model.safetensors.index.json, which several shards need and one may have.
  [[nodiscard]] codec::Checked<void> write_index() const;

 private:
  explicit ShardWriter(std::filesystem::path directory, std::vector<ShardPlan> shards);
  std::filesystem::path directory_;
  std::vector<ShardPlan> shards_;
  std::vector<std::vector<std::uint64_t>> offsets_;  // in the file, per shard and tensor
};

}  // namespace deltarelay::synthetic
