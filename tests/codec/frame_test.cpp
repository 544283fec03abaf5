// Frames: several blocks in one payload, cut to size, and what a damaged one does.
#include "codec/frame.hpp"

#include <doctest/doctest.h>

#include "codec/limits.hpp"
#include "tests/codec/sample_blocks.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::tests;

namespace {

BlockId id_of(std::uint32_t tensor, std::uint32_t block) {
  return {TensorIndex{tensor}, BlockIndex{block}};
}

// Three tensors' worth of neighbouring blocks; block (5, 0) does not change.
struct Neighbours {
  std::vector<BlockPair> blocks;
  std::vector<BlockInput> inputs;
  Neighbours() {
    blocks.push_back(trained_block(4096, 0.05, 1));
    blocks.push_back(trained_block(4096, 0.05, 2));
    blocks.push_back(scattered_block(1, 700, 0.0, 3));
    blocks.push_back(scattered_block(4, 4096, 0.01, 4));
    blocks.push_back({"cleared", DType::BF16, pattern(6000, 5), std::vector<std::byte>(6000)});
    const BlockId ids[] = {id_of(3, 0), id_of(3, 1), id_of(5, 0), id_of(5, 2), id_of(1000, 70000)};
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      inputs.push_back({ids[i], blocks[i].dtype, blocks[i].base, blocks[i].next});
    }
  }
  [[nodiscard]] const BlockPair& at(BlockId id) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].id == id) return blocks[i];
    }
    FAIL("a block that was not given");
    return blocks[0];
  }
};

}  // namespace

TEST_SUITE("codec/frame") {
  TEST_CASE("neighbouring blocks of several tensors share a frame; unchanged ones are not in it") {
    const Neighbours given;
    FrameEncoder encoder;
    std::vector<EncodedFrame> frames;
    encoder.encode(given.inputs, frames);
    REQUIRE(frames.size() == 1);
    const EncodedFrame& frame = frames[0];
    CHECK(frame.stats.changed_blocks == 4);
    CHECK(frame.targets.size() == 4);
    const auto view = FrameView::parse(frame.payload);
    REQUIRE(view.has_value());
    CHECK(frame.stats.overhead_bytes <= 4 * 24 + 8 + view->tables.size());
    REQUIRE(view->entries.size() == 4);
    BlockDecoder decoder;
    for (std::size_t i = 0; i < 4; ++i) {
      const FrameEntry& entry = view->entries[i];
      CHECK(entry.id == frame.targets[i].first);
      CHECK(entry.target == frame.targets[i].second);
      const BlockPair& block = given.at(entry.id);
      std::vector<std::byte> out(block.next.size());
      REQUIRE(decoder.decode(entry, view->tables, block.dtype, block.base, out).has_value());
      CHECK(out == block.next);
    }
  }

  TEST_CASE("content that does not shrink is cut into more frames, each near the target size and all below the limit") {
    std::vector<std::vector<std::byte>> contents;
    std::vector<BlockInput> inputs;
    for (std::uint32_t i = 0; i < 10; ++i) contents.push_back(pattern(block_bytes_default / 2, i));
    for (std::uint32_t i = 0; i < 10; ++i) inputs.push_back({id_of(0, i), DType::U8, {}, contents[i]});
    FrameEncoder encoder;
    std::vector<EncodedFrame> frames;
    encoder.encode(inputs, frames);
    CHECK(frames.size() == 5);
    std::size_t blocks = 0;
    for (const EncodedFrame& frame : frames) {
      blocks += frame.targets.size();
      CHECK(frame.payload.size() <= frame_payload_bytes_target + 128);
      CHECK(FrameView::parse(frame.payload).has_value());
    }
    CHECK(blocks == 10);
  }

  TEST_CASE("every truncation of a frame, and one byte more, is refused") {
    const Neighbours given;
    FrameEncoder encoder;
    std::vector<EncodedFrame> frames;
    encoder.encode(given.inputs, frames);
    const auto& payload = frames.at(0).payload;
    for (std::size_t size = 0; size < payload.size(); ++size) {
      const Exact cut(Bytes(payload).first(size));
      CAPTURE(size);
      CHECK(FrameView::parse(cut.bytes()).error() == errc::truncated);
    }
    auto longer = payload;
    longer.push_back(std::byte{0});
    CHECK(FrameView::parse(longer).error() == errc::trailing_bytes);
  }

  TEST_CASE("no flipped bit and no truncated block makes the decoder leave its buffers, or pass as the target") {
    const Neighbours given;
    FrameEncoder encoder;
    std::vector<EncodedFrame> frames;
    encoder.encode(given.inputs, frames);
    const auto& payload = frames.at(0).payload;
    BlockDecoder decoder;
    std::size_t refused = 0;
    const auto decode_all = [&](Bytes bytes) {
      const auto view = FrameView::parse(bytes);
      if (!view) {
        ++refused;
        return;
      }
      for (const FrameEntry& entry : view->entries) {
        const BlockPair& block = given.blocks[entry.id == id_of(1000, 70000) ? 4 : entry.id == id_of(5, 2) ? 3 : 0];
        const Exact base(block.base);
        const auto out = std::make_unique<std::byte[]>(block.base.size());
        const MutableBytes exact(out.get(), block.base.size());
        if (!decoder.decode(entry, view->tables, block.dtype, base.bytes(), exact)) ++refused;
      }
    };
    for (std::size_t bit = 0; bit < payload.size() * 8; bit += bit < 1200 ? 1 : 7) {
      auto bytes = payload;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      const Exact exact(bytes);
      decode_all(exact.bytes());
    }
    CHECK(refused > 0);

    const auto view = FrameView::parse(payload);
    for (const FrameEntry& whole : view->entries) {
      const BlockPair& block = given.at(whole.id);
      std::vector<std::byte> out(block.next.size());
      for (std::size_t size = 0; size < whole.data.size(); ++size) {
        const Exact cut(whole.data.first(size));
        FrameEntry entry = whole;
        entry.data = cut.bytes();
        const auto decoded = decoder.decode(entry, view->tables, block.dtype, block.base, out);
        const bool passed = decoded.has_value() && digest_of(out) == entry.target;
        CHECK_FALSE(passed);
      }
    }
  }

  TEST_CASE("what the structure must refuse") {
    const auto content = pattern(8, 1);
    FrameEntry entry{id_of(1, 1), Encoding::raw, {}, content};
    const auto payload = build_frame({}, {&entry, 1});
    const auto refusal = [&](std::size_t at, int value) {
      auto bytes = payload;
      bytes[at] = static_cast<std::byte>(value);
      const auto view = FrameView::parse(bytes);
      REQUIRE(view.has_error());
      return view.error();
    };
    CHECK(refusal(0, 0) == errc::malformed_payload);    // no entries
    CHECK(refusal(0, 65) == errc::malformed_payload);   // too many
    CHECK(refusal(0, 2) == errc::truncated);            // more than are there
    CHECK(refusal(1, 100) == errc::truncated);          // tables past the end
    CHECK(refusal(2, 0x1f) == errc::unknown_encoding);  // encoding 15
    CHECK(refusal(4, 0) == errc::malformed_payload);    // no data
    CHECK(refusal(4, 9) == errc::truncated);            // data past the end
    CHECK(refusal(4, 7) == errc::trailing_bytes);       // data short of the end
    CHECK(FrameView::parse({}).error() == errc::truncated);
  }

  TEST_CASE("ids at the top of their range neither wrap nor repeat") {
    const auto content = pattern(8, 1);
    const FrameEntry entries[] = {{id_of(0, 0xffffffff), Encoding::raw, {}, content},
                                  {id_of(0xffffffff, 0xffffffff), Encoding::raw, {}, content}};
    const auto view = FrameView::parse(build_frame({}, entries));
    REQUIRE(view.has_value());
    CHECK(view->entries[1].id == entries[1].id);
    // A third entry, whose delta says "the block after the last one there is".
    auto payload = build_frame({}, entries);
    payload[0] = std::byte{3};
    const std::size_t data_at = payload.size() - 16;
    std::vector<std::byte> third(19);
    third[2] = std::byte{8};
    payload.insert(payload.begin() + static_cast<std::ptrdiff_t>(data_at), third.begin(), third.end());
    payload.resize(payload.size() + 8);
    CHECK(FrameView::parse(payload).error() == errc::malformed_payload);
  }

  TEST_CASE("the decoder names what is missing or does not fit") {
    const Neighbours given;
    FrameEncoder encoder;
    std::vector<EncodedFrame> frames;
    encoder.encode(given.inputs, frames);
    const auto view = FrameView::parse(frames.at(0).payload);
    const FrameEntry& sparse = view->entries[0];
    REQUIRE(needs_base(sparse.encoding));
    const BlockPair& block = given.blocks[0];
    std::vector<std::byte> out(block.next.size());
    BlockDecoder decoder;
    CHECK(decoder.decode(sparse, {}, block.dtype, {}, out).error() == errc::base_required);
    CHECK(decoder.decode(sparse, {}, block.dtype, Bytes(block.base).first(100), out).error() ==
          errc::block_size_mismatch);
    CHECK(decoder.decode(sparse, {}, block.dtype, {}, MutableBytes(out).first(0)).error() == errc::block_size_mismatch);
    const FrameEntry raw{{}, Encoding::raw, {}, block.next};
    CHECK(decoder.decode(raw, {}, block.dtype, {}, MutableBytes(out).first(10)).error() == errc::block_size_mismatch);
  }
}
