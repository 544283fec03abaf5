// The passes over a batch that benchmarks time: the codec's own, and what memory allows (compare, copy).
//
// One Passes per thread; it owns the scratch memory of its passes. Each pass returns something that depends on all it
// did, so that no compiler leaves the work out. Shared by bench_codec and `relayctl bench codec`: both measure the
// same.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/frame.hpp"
#include "tools/bench/live_image.hpp"
#include "tools/bench/trained_pair.hpp"

namespace deltarelay::bench {

class Passes {
 public:
  Passes();

  /// Reads both checkpoints and compares them: what any encoder pays at the least.
  std::uint64_t compare(const Batch& batch);
  /// Copies the next checkpoint into `to`, memory that holds a checkpoint back to back.
  std::uint64_t copy(const Batch& batch, codec::MutableBytes to);
  std::uint64_t digest(const Batch& batch);
  std::uint64_t scan(const Batch& batch);
  /// Scan, hash of the changed blocks, and code.
  std::uint64_t encode(const Batch& batch);
  /// Frames parsed, each block decoded into the slot and hashed there, next to an image that is not written.
  std::uint64_t decode(const Batch& batch);
  /// What an apply worker does per block: decode over the image's block into the slot, compare the digest, copy into
  /// the image.
  std::uint64_t apply(const Batch& batch, LiveImage& image);
  /// As encode(), against nothing: what first sync would send.
  std::uint64_t encode_dense(const Batch& batch);
  std::uint64_t decode_dense(const Batch& batch, const std::vector<codec::EncodedFrame>& frames);

  /// Some block did not decode to what its frame promised: nothing that was measured counts.
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  template <class BaseOf, class Use>
  std::uint64_t decode_frames(const Batch& batch, const std::vector<codec::EncodedFrame>& frames, BaseOf base_of,
                              Use use);

  codec::FrameEncoder encoder_;
  codec::BlockDecoder decoder_;
  std::vector<codec::EncodedFrame> frames_;
  std::vector<codec::BlockInput> dense_;
  std::vector<std::uint64_t> mask_;
  std::vector<std::byte> slot_;
  bool failed_ = false;
};

/// The frames of a batch against nothing.
[[nodiscard]] std::vector<codec::EncodedFrame> dense_frames(const Batch& batch);

}  // namespace deltarelay::bench
