// A HuggingFace checkpoint directory, read-only: which tensors it has and where their bytes are.
//
// Obeys the safetensors reference rules strictly; where the reference documents and its code disagree ("either" files),
// we refuse: a checkpoint that two readers may take differently is not worth a training run (the policy is stated in
// ARCHITECTURE.md and is the same in root, daemon and tools, since all of them come through here).
//
// Sharded directories: with model.safetensors.index.json only what the index assigns counts; a stale copy of a tensor
// in another shard is never read, and unlisted *.safetensors files are ignored and reported in `ignored_files`. A
// tensor that a listed shard holds and the index does not mention is refused: some readers would load it. Without an
// index exactly one *.safetensors file must be there. Symbolic links to regular files are followed (model caches are
// made of them).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/errc.hpp"
#include "codec/layout.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {

inline constexpr std::string_view index_file_name = "model.safetensors.index.json";

/// Whether a file of this name beside the shards travels with a version: not a shard, not the index, not hidden, not
/// one of ours (deltarelay.*), printable UTF-8 without a slash, at most 255 bytes.
[[nodiscard]] bool companion_name_valid(std::string_view name) noexcept;

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
  /// What does not count, one entry each, for a warning: *.safetensors files outside the index, stale copies of tensors
  /// ("FILE: "NAME""), files that cannot be companions (too large, a name that does not travel).
  [[nodiscard]] const std::vector<std::string>& ignored_files() const noexcept { return ignored_; }
  /// True when the tensors came through model.safetensors.index.json.
  [[nodiscard]] bool has_index() const noexcept { return index_.has_value(); }
  /// The index as it was read; nullopt without one.
  [[nodiscard]] const std::optional<FileIdentity>& index_identity() const noexcept { return index_; }

 private:
  friend class CheckpointReader;
  Checkpoint() = default;
  std::filesystem::path directory_;
  std::shared_ptr<const Layout> layout_;
  std::vector<ShardFile> shards_;
  std::vector<TensorPlace> places_;
  std::vector<std::string> companions_, ignored_;
  std::optional<FileIdentity> index_;
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
  /// Fails with file_changed, naming the file, when any shard or the index is no longer the file that was opened,
  /// unchanged. What the file system's clock cannot tell apart (two writes within a few milliseconds) is not noticed.
  [[nodiscard]] Checked<void> check_unchanged() const;

 private:
  struct Mapping;
  explicit CheckpointMap(Checkpoint checkpoint);
  Checkpoint checkpoint_;
  std::vector<Mapping> mappings_;
};

}  // namespace deltarelay::codec
