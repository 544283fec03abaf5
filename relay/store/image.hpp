// The image: the checkpoint directory that engines load, opened to be written. Only this class changes files in it.
//
// Opened under an exclusive kernel lock that dies with the process (no PID file), every shard checked to be ours alone
// (no symbolic link, no second hard link, writable), its space reserved, then mapped shared. Spans die with the Image.
// Threads: block() and sync_blocks() from any, on different blocks; the rest from one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/checkpoint.hpp"
#include "codec/payloads.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relay {

using codec::BlockId;
using codec::Digest;
using codec::Version;

inline constexpr const char* image_lock_name = ".deltarelay.image.lock";
inline constexpr const char* engine_lock_name = "deltarelay.lock";
inline constexpr const char* marker_name = "deltarelay.json";

/// What an engine finds in deltarelay.json.
struct ImageMarker {
  enum class State : std::uint8_t { committed, applying };
  Version version{};  ///< the last committed one
  State state = State::committed;
  Version target{};   ///< the one being applied; 0 when committed
  Digest image;       ///< digest of the digest table of `version`
  std::vector<std::string> changed_tensors;  ///< since the version before; empty when not known
  friend bool operator==(const ImageMarker&, const ImageMarker&) = default;
};

class Image {
 public:
  struct Options {
    std::uint32_t block_bytes = codec::block_bytes_default;
    bool reserve_space = true;
  };
  /// Errors: file_locked, file_is_symlink, file_has_hard_links, file_read_only, ENOSPC, and what Checkpoint::open refuses
  /// (codec::errc); each names the file.
  [[nodiscard]] static StoreResult<Image> open(const std::filesystem::path& directory, Options options);
  [[nodiscard]] static StoreResult<Image> open(const std::filesystem::path& directory) { return open(directory, Options{}); }
  /// Makes an image of zeros in an absent or empty directory. A failure leaves the directory without shards.
  [[nodiscard]] static StoreResult<Image> create(const std::filesystem::path& directory, const codec::LayoutPayload& layout);
  Image(Image&&) noexcept;
  Image& operator=(Image&&) noexcept;
  ~Image();

  [[nodiscard]] const std::filesystem::path& directory() const noexcept;
  [[nodiscard]] const codec::Layout& layout() const noexcept;
  [[nodiscard]] const std::shared_ptr<const codec::Layout>& shared_layout() const noexcept;
  [[nodiscard]] const codec::Checkpoint& checkpoint() const noexcept;
  /// Mapped memory: touch it under sigbus_guard only. REQUIRES layout().contains(id).
  [[nodiscard]] codec::MutableBytes block(BlockId id) const;
  [[nodiscard]] codec::MutableBytes block_at(std::uint64_t ordinal) const { return block(layout().block_at(ordinal)); }
  /// The error that tells of a failed access to a block's bytes.
  [[nodiscard]] StoreError access_error(BlockId id, std::size_t offset_in_block, std::string what) const;
  /// The canonical layout record's payload for hosts that start with nothing.
  [[nodiscard]] StoreResult<codec::LayoutPayload> layout_payload() const;

  /// Errors: file_replaced, file_truncated, file_has_hard_links. Cheap: call it before a refit and before its commit.
  [[nodiscard]] StoreResult<void> check_identity() const;
  [[nodiscard]] StoreResult<void> sync_blocks(std::span<const BlockId> ids) const;
  /// msync of everything and fsync of the files.
  [[nodiscard]] StoreResult<void> sync() const;

  /// Replaces one companion file whole. Errors: name_refused.
  [[nodiscard]] StoreResult<void> write_companion(const codec::FilePayload& file) const;
  [[nodiscard]] StoreResult<codec::FilePayload> read_companion(const std::string& name) const;
  /// Names, sizes and SHA-256 as they are now; sorted.
  [[nodiscard]] StoreResult<std::vector<codec::CompanionFile>> companions() const;

  [[nodiscard]] StoreResult<void> write_marker(const ImageMarker& marker) const;
  /// nullopt when there is none.
  [[nodiscard]] StoreResult<std::optional<ImageMarker>> read_marker() const;

  /// Readers hold a shared flock on deltarelay.lock. True: none does and none can until release_engines(). Does not wait.
  [[nodiscard]] StoreResult<bool> try_hold_engines();
  void release_engines() noexcept;

 private:
  struct State;
  explicit Image(std::unique_ptr<State> state);
  [[nodiscard]] static StoreResult<void> map_shards(State& state, bool reserve_space);
  std::unique_ptr<State> state_;
};

}  // namespace deltarelay::relay
