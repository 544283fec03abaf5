// A HuggingFace checkpoint directory, read-only: which tensors it has and where their bytes are.
//
// Obeys the safetensors reference rules strictly; where the reference documents and its code disagree ("either" files),
// we refuse: a checkpoint that two readers may take differently is not worth a training run (the policy is stated in
// ARCHITECTURE.md and is the same in root, daemon and tools, since all of them come through here).
//
// Sharded directories: with model.safetensors.index.json only what the index assigns counts; a stale copy of a tensor
// in another shard is never read, and unlisted *.safetensors files are ignored and reported in `ignored_files`. Without an index
// exactly one *.safetensors file must be there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "codec/errc.hpp"
#include "codec/layout.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {

/// Where one tensor's bytes are.
struct TensorPlace {
  std::uint32_t shard = 0;        ///< index into Checkpoint::shards()
  std::uint64_t file_offset = 0;  ///< absolute, any alignment
};

/// Size, times and identity of a file, to notice that it changed while it was read.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct ShardFile {
  std::string name;                ///< relative to the directory, no slash
  std::uint64_t header_bytes = 0;  ///< 8 + N: the data section begins here
  FileIdentity identity;
};

/// Headers only; opens, checks and closes each file. The data is reached by CheckpointMap.
class Checkpoint {
 public:
  /// `path` is a directory, or one .safetensors file. `block_bytes` cuts the layout's blocks.
  [[nodiscard]] static Checked<Checkpoint> open(const std::filesystem::path& path,
                                                std::uint32_t block_bytes = block_bytes_default);

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
  [[nodiscard]] const std::shared_ptr<const Layout>& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::vector<ShardFile>& shards() const noexcept { return shards_; }
  /// Parallel to layout()->tensors().
  [[nodiscard]] const std::vector<TensorPlace>& places() const noexcept { return places_; }
  /// Small non-tensor files beside the shards (config.json, tokenizer files, …), names sorted; the index is not one.
  [[nodiscard]] const std::vector<std::string>& companions() const noexcept { return companions_; }
  /// *.safetensors files (and unlisted copies of tensors) that do not count, for a warning.
  [[nodiscard]] const std::vector<std::string>& ignored_files() const noexcept { return ignored_; }
  /// True when the tensors came through model.safetensors.index.json.
  [[nodiscard]] bool has_index() const noexcept { return has_index_; }

 private:
  std::filesystem::path directory_;
  std::shared_ptr<const Layout> layout_;
  std::vector<ShardFile> shards_;
  std::vector<TensorPlace> places_;
  std::vector<std::string> companions_, ignored_;
  bool has_index_ = false;
};

/// A read-only mapping of a checkpoint's shards. Movable, not copyable; spans die with it. A file truncated under the
/// mapping raises SIGBUS on access: long-lived processes read through relay/store's sigbus_guard.
class CheckpointMap {
 public:
  [[nodiscard]] static Checked<CheckpointMap> open(Checkpoint checkpoint);
  CheckpointMap(CheckpointMap&&) noexcept;
  CheckpointMap& operator=(CheckpointMap&&) noexcept;
  ~CheckpointMap();

  [[nodiscard]] const Checkpoint& checkpoint() const noexcept { return checkpoint_; }
  [[nodiscard]] const Layout& layout() const noexcept { return *checkpoint_.layout(); }
  [[nodiscard]] Bytes tensor(TensorIndex index) const;
  [[nodiscard]] Bytes block(BlockId id) const;
  /// Fails with file_changed, naming the file, when any shard is no longer the file that was opened, unchanged.
  [[nodiscard]] Checked<void> check_unchanged() const;

 private:
  struct Mapping;
  explicit CheckpointMap(Checkpoint checkpoint);
  Checkpoint checkpoint_;
  std::vector<Mapping> mappings_;
};

}  // namespace deltarelay::codec
