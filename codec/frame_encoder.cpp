// Blocks in, frames out. Each block is scanned, hashed and encoded while it is in the cache; whole frames are cut
// after.
//
// Order of work: every changed block is given to BlockEncoder as soon as it is scanned; what shares tables (class) is
// put off and coded when all blocks of the call have been seen, before cut().
#include <cassert>
#include <optional>
#include <utility>

#include "codec/encoding/choose.hpp"
#include "codec/frame.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

struct EncodedBlock {
  FrameEntry entry;  // data is set when the frame is cut: the buffer moves while it grows
  std::size_t data_begin = 0, data_end = 0;
  std::uint64_t elements = 0, changed_elements = 0;
  bool deferred = false;

  [[nodiscard]] std::size_t data_bytes() const noexcept { return data_end - data_begin; }
};

}  // namespace

struct FrameEncoder::State {
  BlockEncoder encoder;
  std::vector<std::byte> data;
  std::vector<EncodedBlock> blocks;
  std::vector<BlockEncoder::Deferred> deferred;
  std::vector<FrameEntry> entries;

  void add(const BlockInput& block);
  void finish_deferred();
  void cut(std::vector<EncodedFrame>& out);
  EncodedFrame make_frame(std::span<const EncodedBlock> part);
};

FrameEncoder::FrameEncoder() : state_(std::make_unique<State>()) {}
FrameEncoder::FrameEncoder(FrameEncoder&&) noexcept = default;
FrameEncoder& FrameEncoder::operator=(FrameEncoder&&) noexcept = default;
FrameEncoder::~FrameEncoder() = default;

void FrameEncoder::State::add(const BlockInput& block) {
  assert(!block.next.empty() && block.next.size() <= block_bytes_max);
  EncodedBlock encoded;
  encoded.entry.id = block.id;
  encoded.data_begin = data.size();
  if (block.base.empty()) {
    encoded.elements = block.next.size() / block_width(block.dtype, block.next.size());
    encoded.entry.encoding = encoder.encode_whole(block.dtype, block.next, data);
    encoded.entry.target = digest_of(block.next);
  } else {
    assert(block.base.size() == block.next.size());
    const ScannedBlock scanned = encoder.scan(block);
    if (scanned.changed_count == 0) return;
    encoded.entry.target = scanned.target;
    encoded.elements = scanned.elements();
    encoded.changed_elements = scanned.changed_count;
    const std::optional<Encoding> encoding = encoder.encode_change(scanned, data);
    encoded.deferred = !encoding;
    if (encoding) {
      encoded.entry.encoding = *encoding;
    } else {
      deferred.push_back({&block, {}, 0, 0});
    }
  }
  encoded.data_end = data.size();
  blocks.push_back(encoded);
}

void FrameEncoder::State::finish_deferred() {
  encoder.finish_class(deferred, data);
  auto finished = deferred.begin();
  for (EncodedBlock& block : blocks) {
    if (!block.deferred) continue;
    block.entry.encoding = finished->encoding;
    block.data_begin = finished->begin;
    block.data_end = finished->end;
    ++finished;
  }
}

EncodedFrame FrameEncoder::State::make_frame(std::span<const EncodedBlock> part) {
  EncodedFrame frame;
  entries.clear();
  std::size_t data_bytes = 0;
  bool has_class = false;
  for (const EncodedBlock& block : part) {
    FrameEntry entry = block.entry;
    entry.data = Bytes(data).subspan(block.data_begin, block.data_bytes());
    const auto encoding = static_cast<std::size_t>(entry.encoding);
    frame.stats.payload_bytes_by_encoding[encoding] += entry.data.size();
    frame.stats.blocks_by_encoding[encoding] += 1;
    frame.stats.elements += block.elements;
    frame.stats.changed_elements += block.changed_elements;
    frame.targets.emplace_back(entry.id, entry.target);
    data_bytes += entry.data.size();
    has_class |= entry.encoding == Encoding::class_rans;
    entries.push_back(entry);
  }
  frame.stats.blocks = frame.stats.changed_blocks = part.size();
  frame.payload = build_frame(has_class ? Bytes(encoder.class_tables()) : Bytes{}, entries);
  frame.stats.overhead_bytes = frame.payload.size() - data_bytes;
  assert(frame.payload.size() <= frame_payload_bytes_max);
  return frame;
}

// A new frame begins where the next block would pass the target size.
void FrameEncoder::State::cut(std::vector<EncodedFrame>& out) {
  const std::span<const EncodedBlock> all(blocks);
  std::size_t begin = 0, data_bytes = 0;
  for (std::size_t end = 1; end <= all.size(); ++end) {
    data_bytes += all[end - 1].data_bytes();
    if (end < all.size() && data_bytes + all[end].data_bytes() <= frame_payload_bytes_target) continue;
    out.push_back(make_frame(all.subspan(begin, end - begin)));
    begin = end;
    data_bytes = 0;
  }
}

void FrameEncoder::encode(std::span<const BlockInput> blocks, std::vector<EncodedFrame>& out) {
  assert(!blocks.empty() && blocks.size() <= frame_blocks_max);
  state_->data.clear();
  state_->blocks.clear();
  state_->deferred.clear();
  state_->encoder.begin(blocks);
  for (const BlockInput& block : blocks) state_->add(block);
  state_->finish_deferred();
  if (!state_->blocks.empty()) state_->cut(out);
}

}  // namespace deltarelay::codec
