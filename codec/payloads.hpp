// The payloads of the records that are not frames. Each decode() refuses truncated and left-over bytes and any count or
// length past limits.hpp, and allocates no more than the payload's own size allows. Formats: FORMAT.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/digest.hpp"
#include "codec/errc.hpp"
#include "codec/signature.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

/// Whether a record may name this file beside the shards: one path component, printable, at most 255 bytes, and neither
/// a shard, an index, nor a file of ours. What a peer sends becomes a file name on every host, so all else is refused.
[[nodiscard]] bool is_companion_name(std::string_view name) noexcept;
/// The same for the name of a shard: one printable path component that ends in ".safetensors".
[[nodiscard]] bool is_shard_name(std::string_view name) noexcept;

/// Opens a refit. Sequence 0 of every stripe.
struct BeginPayload {
  Version base{};
  Digest base_image;     ///< digest of the base's digest table
  Digest layout_digest;  ///< Layout::digest(); a refit never changes the layout
  std::uint32_t block_bytes = 0;
  std::uint16_t stripe_count = 1;
  std::uint64_t total_bytes = 0;  ///< dense bytes of the image, for progress
  friend bool operator==(const BeginPayload&, const BeginPayload&) = default;

  [[nodiscard]] std::vector<std::byte> encode() const;
  [[nodiscard]] static Result<BeginPayload> decode(Bytes in);
};

/// A small non-tensor file, whole. `name` satisfies is_companion_name(); decode() also checks `sha256` against
/// `content`.
struct FilePayload {
  std::string name;
  Sha256 sha256{};
  std::vector<std::byte> content;
  friend bool operator==(const FilePayload&, const FilePayload&) = default;

  [[nodiscard]] std::vector<std::byte> encode() const;
  [[nodiscard]] static Result<FilePayload> decode(Bytes in);
};

/// A non-tensor file by name, as the image has it at a version.
struct CompanionFile {
  std::string name;
  std::uint64_t bytes = 0;
  Sha256 sha256{};
  friend bool operator==(const CompanionFile&, const CompanionFile&) = default;
};

/// Closes a stripe and seals the version: signed proof of what the image of `version` is. Kept in the ledger.
struct EndPayload {
  std::uint64_t frame_count = 0;       ///< FRAME records of this stripe
  std::uint64_t changed_blocks = 0;    ///< blocks in them
  std::uint64_t changed_elements = 0;  ///< for the statistics
  Digest image;                        ///< digest of the whole new digest table
  Digest layout_digest;
  std::vector<CompanionFile> companions;  ///< names sorted
  friend bool operator==(const EndPayload&, const EndPayload&) = default;

  [[nodiscard]] std::vector<std::byte> encode() const;
  [[nodiscard]] static Result<EndPayload> decode(Bytes in);
};

/// One shard file as a host with no image must make it: everything but the tensors' bytes.
struct ShardSkeleton {
  std::string name;
  std::uint64_t file_bytes = 0;
  std::vector<std::byte> header;  ///< the first 8 + N bytes of the file
  friend bool operator==(const ShardSkeleton&, const ShardSkeleton&) = default;
};

/// The canonical tensor table and the root's own files, for hosts that start with nothing.
struct LayoutPayload {
  std::vector<std::byte> layout;      ///< Layout::encode()
  std::vector<ShardSkeleton> shards;  ///< names sorted
  std::vector<std::byte> index_json;  ///< model.safetensors.index.json, or empty
  friend bool operator==(const LayoutPayload&, const LayoutPayload&) = default;

  [[nodiscard]] std::vector<std::byte> encode() const;
  [[nodiscard]] static Result<LayoutPayload> decode(Bytes in);
};

}  // namespace deltarelay::codec
