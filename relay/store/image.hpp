// The checkpoint directory that engines load, opened for writing: locked, owned and reserved on disk.
//
// Engines map the shards; this reads and writes them a block a call. That is the same page cache, so engines see it at
// once, and it was measured: through a mapping of our own, each refit takes a page fault for every 4 KiB that the
// kernel has written back since the last one, four times the cost of the whole refit on seven daemons (and a SIGBUS
// where a call has an errno).
//
// Nothing is written before the lock is held and every shard is proved to be ours alone (no symbolic link, no other
// hard link, writable). Blocks of different ids may be used by different threads; the rest belongs to one thread at a
// time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/checkpoint.hpp"
#include "codec/payloads.hpp"
#include "relay/store/file_ops.hpp"
#include "relay/store/image_marker.hpp"

namespace deltarelay::relay {

class Image {
 public:
  /// Errors: already_locked, symbolic_link, hard_linked, read_only, replaced, those of the codec with their file,
  /// ENOSPC.
  [[nodiscard]] static StoreResult<std::unique_ptr<Image>> open(const std::filesystem::path& directory,
                                                                std::uint32_t block_bytes);
  /// The same under a lock that is held already, for a daemon that opens its image anew.
  [[nodiscard]] static StoreResult<std::unique_ptr<Image>> open(const std::filesystem::path& directory,
                                                                std::uint32_t block_bytes, File lock);
  /// The lock that keeps other daemons out: its holder is the only one that writes. Errors: already_locked, read_only.
  [[nodiscard]] static StoreResult<File> lock_directory(const std::filesystem::path& directory);
  /// Makes the shards and the index of an image whose tensors are all zero. The directory is absent, empty, or left
  /// behind by a create() that did not end. Errors: not_empty, corrupt (a name with a slash, a header longer than its
  /// file).
  [[nodiscard]] static StoreResult<void> create(const std::filesystem::path& directory,
                                                const codec::LayoutPayload& layout);

  /// Makes the files of `shape` whole again that damaged_files() named: zeros where weights were, after `marker` says
  /// that the image is no version. REQUIRES the directory's lock. Errors: engine_reads, hard_linked, and those of the
  /// file system.
  [[nodiscard]] static StoreResult<void> mend(const std::filesystem::path& directory, const codec::LayoutPayload& shape,
                                              const std::vector<std::string>& names, const ImageMarker& marker);

  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  [[nodiscard]] const codec::Checkpoint& checkpoint() const noexcept { return checkpoint_; }
  [[nodiscard]] const std::shared_ptr<const codec::Layout>& layout() const noexcept { return checkpoint_.layout(); }
  /// Copies a block out. Error replaced when the file ends before it. REQUIRES out.size() == layout()->size_of(id).
  [[nodiscard]] StoreResult<void> read_block(codec::BlockId id, codec::MutableBytes out) const;
  [[nodiscard]] StoreResult<void> write_block(codec::BlockId id, codec::Bytes content) const;
  /// Error replaced, naming the shard whose path is no longer the open file at its size.
  [[nodiscard]] StoreResult<void> check_identity() const;
  /// Every write to a block before this call is durable after it.
  [[nodiscard]] StoreResult<void> sync() const;
  /// Error corrupt for a name that could leave the directory or that is ours.
  [[nodiscard]] StoreResult<void> write_companion(const codec::FilePayload& file) const;
  [[nodiscard]] StoreResult<void> write_marker(const ImageMarker& marker) const;
  /// True: no engine reads (engine_lock.hpp), and none begins before release_engines(). Does not wait.
  [[nodiscard]] StoreResult<bool> try_hold_engines();
  void release_engines() noexcept { engine_lock_.reset(); }

 private:
  struct Shard {
    File file;
    std::uint64_t bytes = 0;
  };
  Image(File lock, codec::Checkpoint checkpoint) : lock_(std::move(lock)), checkpoint_(std::move(checkpoint)) {}
  [[nodiscard]] StoreResult<void> open_shard(const codec::ShardFile& shard);

  File lock_;
  std::optional<File> engine_lock_;
  codec::Checkpoint checkpoint_;
  std::vector<Shard> shards_;
};

}  // namespace deltarelay::relay
