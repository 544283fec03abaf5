#include "tools/bench/codec_passes.hpp"

#include <algorithm>
#include <cstring>

#include "codec/digest.hpp"
#include "codec/kernels/scan.hpp"
#include "codec/limits.hpp"

namespace deltarelay::bench {
namespace {

using codec::BlockInput;
using codec::Bytes;
using codec::EncodedFrame;
using codec::MutableBytes;

std::uint64_t payload_bytes(const std::vector<EncodedFrame>& frames) {
  std::uint64_t out = 0;
  for (const EncodedFrame& frame : frames) out += frame.payload.size();
  return out;
}

void against_nothing(const Batch& batch, std::vector<BlockInput>& out) {
  out = batch.blocks;
  for (BlockInput& block : out) block.base = {};
}

}  // namespace

Passes::Passes() : mask_(codec::kernels::mask_words(codec::block_bytes_default)), slot_(codec::block_bytes_default) {}

std::uint64_t Passes::compare(const Batch& batch) {
  std::uint64_t difference = 0;
  for (const BlockInput& block : batch.blocks) {
    std::uint64_t lanes[4] = {};
    for (std::size_t at = 0; at + 32 <= block.next.size(); at += 32) {
      std::uint64_t x[4], y[4];
      std::memcpy(x, block.base.data() + at, 32);
      std::memcpy(y, block.next.data() + at, 32);
      for (int lane = 0; lane < 4; ++lane) lanes[lane] |= x[lane] ^ y[lane];
    }
    difference |= lanes[0] | lanes[1] | lanes[2] | lanes[3];
  }
  return difference;
}

std::uint64_t Passes::copy(const Batch& batch, MutableBytes to) {
  for (std::size_t i = 0; i < batch.blocks.size(); ++i)
    std::ranges::copy(batch.blocks[i].next, to.begin() + static_cast<std::ptrdiff_t>(batch.offsets[i]));
  return std::to_integer<std::uint64_t>(to[batch.offsets.front()]);
}

std::uint64_t Passes::digest(const Batch& batch) {
  std::uint64_t out = 0;
  for (const BlockInput& block : batch.blocks) {
    const codec::Digest digest = codec::digest_of(block.next);
    out ^= std::to_integer<std::uint64_t>(digest.bytes[0]);
  }
  return out;
}

std::uint64_t Passes::scan(const Batch& batch) {
  std::uint64_t changed = 0;
  for (const BlockInput& block : batch.blocks)
    changed += codec::kernels::scan_changes(block.base, block.next, codec::element_width(block.dtype), mask_.data());
  return changed;
}

std::uint64_t Passes::encode(const Batch& batch) {
  frames_.clear();
  encoder_.encode(batch.blocks, frames_);
  return payload_bytes(frames_);
}

std::uint64_t Passes::encode_dense(const Batch& batch) {
  against_nothing(batch, dense_);
  frames_.clear();
  encoder_.encode(dense_, frames_);
  return payload_bytes(frames_);
}

/// Parses frames of a batch, decodes each block over what `base_of` gives for its number, and gives the number and the
/// verified content to `use`.
template <class BaseOf, class Use>
std::uint64_t Passes::decode_frames(const Batch& batch, const std::vector<EncodedFrame>& frames, BaseOf base_of,
                                    Use use) {
  std::uint64_t bytes = 0;
  for (const EncodedFrame& frame : frames) {
    const auto view = codec::FrameView::parse(frame.payload);
    if (!view) {
      failed_ = true;
      continue;
    }
    std::size_t at = 0;  // blocks that did not change are in no frame
    for (const codec::FrameEntry& entry : view->entries) {
      while (batch.blocks[at].id != entry.id) ++at;
      const BlockInput& block = batch.blocks[at];
      const MutableBytes content = MutableBytes(slot_).first(block.next.size());
      const auto decoded = decoder_.decode(entry, view->tables, block.dtype, base_of(at), content);
      if (decoded && *decoded == entry.target) {
        use(at, content);
        bytes += content.size();
      } else {
        failed_ = true;
      }
    }
  }
  return bytes;
}

std::uint64_t Passes::decode(const Batch& batch) {
  return decode_frames(
      batch, batch.frames, [&](std::size_t at) { return batch.blocks[at].base; }, [](std::size_t, Bytes) {});
}

std::uint64_t Passes::apply(const Batch& batch, LiveImage& image) {
  return decode_frames(
      batch, image.turn(batch), [&](std::size_t at) { return Bytes(image.block(batch, at)); },
      [&](std::size_t at, Bytes content) { std::ranges::copy(content, image.block(batch, at).begin()); });
}

std::uint64_t Passes::decode_dense(const Batch& batch, const std::vector<EncodedFrame>& frames) {
  return decode_frames(
      batch, frames, [](std::size_t) { return Bytes{}; }, [](std::size_t, Bytes) {});
}

std::vector<EncodedFrame> dense_frames(const Batch& batch) {
  std::vector<BlockInput> blocks;
  against_nothing(batch, blocks);
  std::vector<EncodedFrame> out;
  codec::FrameEncoder().encode(blocks, out);
  return out;
}

}  // namespace deltarelay::bench
