// A frame's payload: the new content of up to `frame_blocks_max` blocks, each encoded against its base block, or
// against nothing. Blocks decode independently of each other, of other frames and of the order of arrival.
//
// Payload (FORMAT.md, "FRAME"): shared code tables, one entry per block (tensor, block, encoding, length, target
// digest), then the encoded blocks back to back. The same payload travels in block sync (relay/core/block_sync.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/digest.hpp"
#include "codec/errc.hpp"
#include "codec/layout.hpp"

namespace deltarelay::codec {

/// On the wire, append only. `raw`, `lz4` and `dense_planes` need no base.
enum class Encoding : std::uint8_t { raw = 0, lz4 = 1, xor_lz4 = 2, sparse = 3, class_rans = 4, dense_planes = 5 };
inline constexpr std::size_t encoding_count = 6;
[[nodiscard]] bool needs_base(Encoding encoding) noexcept;
[[nodiscard]] const char* encoding_name(Encoding encoding) noexcept;

/// One block of a parsed frame. Spans point into the payload that was parsed.
struct FrameEntry {
  BlockId id;
  Encoding encoding{};
  Digest target;  ///< XXH3-128 of the block's new bytes
  Bytes data;
};

/// A parsed payload: entries in ascending BlockId order, every length inside the payload, nothing decoded yet.
struct FrameView {
  Bytes tables;  ///< shared code tables of class_rans; empty when unused
  std::vector<FrameEntry> entries;

  /// Checks the structure alone. Errors: truncated, trailing_bytes, malformed_payload (counts, order, lengths),
  /// unknown_encoding.
  [[nodiscard]] static Result<FrameView> parse(Bytes payload);
};

/// The payload of a frame with these entries: parse()'s inverse. REQUIRES ascending ids, at most frame_blocks_max of
/// them, data not empty.
[[nodiscard]] std::vector<std::byte> build_frame(Bytes tables, std::span<const FrameEntry> entries);

/// What a frame's encoding found, of the blocks in the frame (blocks that did not change are in none: whoever sums the
/// frames of a refit sets `blocks` and `elements` from the layout).
struct FrameStats {
  std::uint64_t blocks = 0, changed_blocks = 0;
  std::uint64_t elements = 0, changed_elements = 0;  ///< 0 changed_elements counted for blocks without base
  std::uint64_t payload_bytes_by_encoding[encoding_count]{};
  std::uint64_t blocks_by_encoding[encoding_count]{};
  std::uint64_t overhead_bytes = 0;  ///< entries and tables
  FrameStats& operator+=(const FrameStats& other) noexcept;
};

struct BlockInput {
  BlockId id;
  DType dtype{};
  Bytes base;  ///< empty: encode against nothing (first sync, repair)
  Bytes next;  ///< same size as base when base is given
};

/// One encoded frame, at least one changed block in it.
struct EncodedFrame {
  std::vector<std::byte> payload;
  std::vector<std::pair<BlockId, Digest>> targets;  ///< changed blocks and their new digests
  FrameStats stats;
};

/// Encodes neighbouring blocks into frames. One per worker thread: reuses its buffers, so no allocation per block in
/// the steady state. Not thread-safe.
class FrameEncoder {
 public:
  FrameEncoder();
  FrameEncoder(FrameEncoder&&) noexcept;
  FrameEncoder& operator=(FrameEncoder&&) noexcept;
  ~FrameEncoder();

  /// Appends to `out` one frame for the blocks that differ from their base: none when none does, more than one where
  /// the content does not shrink and one payload would pass frame_payload_bytes_max. Never fails: raw always fits.
  /// REQUIRES ascending ids, 1 .. frame_blocks_max of them, each next.size() <= block_bytes_max.
  void encode(std::span<const BlockInput> blocks, std::vector<EncodedFrame>& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Decodes blocks. One per worker thread: owns scratch memory. Not thread-safe.
class BlockDecoder {
 public:
  BlockDecoder();
  BlockDecoder(BlockDecoder&&) noexcept;
  BlockDecoder& operator=(BlockDecoder&&) noexcept;
  ~BlockDecoder();

  /// Decodes `entry` of a frame with shared `tables` into `out` (exactly the block's size; must not overlap base).
  /// `base` has the size of `out` or is empty. Returns the digest of `out`, hashed while it was in the nearest cache:
  /// the caller compares it with the entry's target before it uses `out`. No input makes it read or write out of
  /// bounds, loop for long or allocate more than the block asks for. Errors: base_required, block_size_mismatch,
  /// malformed_payload, truncated, trailing_bytes.
  [[nodiscard]] Result<Digest> decode(const FrameEntry& entry, Bytes tables, DType dtype, Bytes base, MutableBytes out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace deltarelay::codec
