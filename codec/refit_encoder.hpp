// From a base and a next source to frames, on worker threads: what a root's publish and `relayctl delta encode` share.
//
// Both sources speak of one layout. Workers take batches of neighbouring blocks (small tensors share one) in ascending
// order, so that the disk sees two sequential reads, and hand each frame to the sink as soon as it is encoded: the
// first frame leaves long before the last block is read. Frames arrive in no fixed order and from several threads at
// once. Memory: at most `threads` batches; a sink that blocks is the brake.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "codec/errc.hpp"
#include "codec/frame.hpp"
#include "codec/layout.hpp"

namespace deltarelay::codec {

class CheckpointMap;

/// Gives the bytes of one block, called by several workers at once. Returns memory of its own that lives until the
/// refit is encoded, or fills the first bytes of `scratch` (at least as large as the block) and returns those: mapped
/// files that may be cut off under us are copied there under a guard.
using BlockReader = std::function<Result<Bytes>(BlockId id, MutableBytes scratch)>;
using FrameSink = std::function<void(EncodedFrame&& frame)>;

struct RefitInput {
  const Layout& layout;
  BlockReader base;  ///< empty: encode against nothing
  BlockReader next;
  /// What the base's blocks hash to, layout.block_count() of them; empty: not known, the base is hashed as it is read.
  std::span<const Digest> base_digests;
};

struct RefitOptions {
  unsigned threads = 1;
  std::size_t blocks_per_frame = 16;  ///< full ones; small tensors' blocks count by their bytes
};

/// Shared with whoever watches or stops the work.
struct RefitControl {
  std::atomic<bool> cancel{false};
  std::atomic<std::uint64_t> done_blocks{0}, done_bytes{0}, done_elements{0}, changed_blocks{0}, changed_elements{0},
      frames{0}, payload_bytes{0};
};

struct RefitResult {
  std::vector<Digest> base_digests;  ///< empty when they were given or there is no base
  std::vector<Digest> next_digests;  ///< digest_of() of it is the digest of the new image
  FrameStats stats;                  ///< with all blocks and elements of the layout
  std::uint64_t frames = 0;
};

/// Runs until every block is encoded and every frame was taken by `sink`. Nothing is called after it returns.
/// Errors: what a reader refused, naming the tensor; block_size_mismatch when it gave too few or too many bytes;
/// operation_canceled (generic category) when `control.cancel` became true. An exception of the sink ends the work and
/// comes out here.
[[nodiscard]] Checked<RefitResult> encode_refit(const RefitInput& input, const RefitOptions& options,
                                                RefitControl& control, const FrameSink& sink);

/// Reads straight from the mapping; for offline tools (a long-lived process reads under relay/store's guard).
/// `map` must outlive the reader.
[[nodiscard]] BlockReader reader_of(const CheckpointMap& map);

}  // namespace deltarelay::codec
