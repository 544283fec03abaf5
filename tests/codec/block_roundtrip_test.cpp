// Blocks of every dtype and kind through every encoding and back, bit for bit.
#include <doctest/doctest.h>

#include "codec/frame.hpp"
#include "codec/limits.hpp"
#include "tests/codec/sample_blocks.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::tests;

namespace {

struct RoundTrip {
  Encoding encoding{};
  std::size_t data_bytes = 0;
};

// Encodes one block alone, decodes it into a buffer of exactly its size, and compares. The base is given at an odd
// address, as a mapped file may give it.
RoundTrip round_trip(const BlockPair& block, bool with_base = true) {
  std::vector<std::byte> shifted(block.base.size() + 1);
  std::copy(block.base.begin(), block.base.end(), shifted.begin() + 1);
  const Bytes base = with_base ? Bytes(shifted).subspan(1) : Bytes{};

  FrameEncoder encoder;
  std::vector<EncodedFrame> frames;
  const BlockInput input{{TensorIndex{7}, BlockIndex{9}}, block.dtype, base, block.next};
  encoder.encode({&input, 1}, frames);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].payload.size() <= block.next.size() + 64);

  const Exact payload(frames[0].payload);
  const auto view = FrameView::parse(payload.bytes());
  REQUIRE(view.has_value());
  REQUIRE(view->entries.size() == 1);
  const FrameEntry& entry = view->entries[0];
  CHECK(entry.id == input.id);
  std::vector<std::byte> out(block.next.size());
  BlockDecoder decoder;
  REQUIRE(decoder.decode(entry, view->tables, block.dtype, base, out).has_value());
  CHECK(out == block.next);
  CHECK(digest_of(out) == entry.target);
  return {entry.encoding, entry.data.size()};
}

}  // namespace

TEST_SUITE("codec/blocks") {
  TEST_CASE("weights after a training step shrink to their changes") {
    for (const double share : {0.01, 0.03, 0.05}) {
      const BlockPair block = trained_block(1u << 18, share, 11);
      const RoundTrip trip = round_trip(block);
      CAPTURE(share);
      CHECK(trip.encoding != Encoding::raw);
      CHECK(trip.data_bytes < block.next.size() / 12);
    }
  }

  TEST_CASE("special bit patterns survive in every direction") {
    round_trip(special_values_block());
  }

  TEST_CASE("scattered changes of every width and share come back") {
    std::uint64_t seed = 100;
    for (const unsigned width : {1u, 2u, 4u, 8u}) {
      for (const double share : {0.0005, 0.01, 0.2, 0.6, 1.0}) {
        CAPTURE(width);
        CAPTURE(share);
        auto block = scattered_block(width, 16384, share, ++seed);
        block.next[5] ^= std::byte{1};
        round_trip(block);
      }
    }
  }

  TEST_CASE("one changed element at either end, by the smallest and the largest steps") {
    for (const unsigned width : {1u, 2u, 4u, 8u}) {
      for (const std::size_t position : {std::size_t{0}, std::size_t{77}, std::size_t{4095}}) {
        for (const std::uint64_t step : {std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{9},
                                         std::uint64_t{1} << (8 * width - 1), (std::uint64_t{1} << (8 * width - 1)) - 1,
                                         (std::uint64_t{1} << (8 * width - 1)) + 1}) {
          BlockPair block{"one", dtype_of_width(width), pattern(4096 * width, 5), {}};
          block.next = block.base;
          move_element(block.next, width, position, step);
          const RoundTrip trip = round_trip(block);
          CHECK(trip.encoding == Encoding::sparse);
          CHECK(trip.data_bytes <= 90);
        }
      }
    }
  }

  TEST_CASE("every element moved by the same step is next to nothing") {
    for (const unsigned width : {1u, 2u, 4u, 8u}) {
      BlockPair block{"shift", dtype_of_width(width), pattern(32768, 6), {}};
      block.next = block.base;
      for (std::size_t i = 0; i < block.next.size() / width; ++i) move_element(block.next, width, i, 1);
      CHECK(round_trip(block).data_bytes <= 32768 / width / 4 + 16);
    }
  }

  TEST_CASE("content that has nothing to do with the base costs no more than itself") {
    for (const unsigned width : {1u, 2u, 4u, 8u}) {
      BlockPair block{"other", dtype_of_width(width), pattern(8192, 7), pattern(8192, 8)};
      CHECK(round_trip(block).data_bytes <= 8192);
    }
  }

  TEST_CASE("a tensor set to one value, or whose old content was constant, is coded by repetition") {
    BlockPair block{"cleared", DType::BF16, pattern(65536, 9), std::vector<std::byte>(65536)};
    CHECK(round_trip(block).encoding == Encoding::lz4);
    BlockPair flipped{"sign of all", DType::F64, pattern(65536, 10), {}};
    flipped.next = flipped.base;
    for (std::size_t i = 0; i < flipped.next.size(); ++i)
      flipped.next[i] ^= static_cast<std::byte>(i % 8 < 6 ? 0xa5 : 0);
    CHECK(round_trip(flipped).encoding == Encoding::xor_lz4);
  }

  TEST_CASE("without a base, repeating content is lz4 and the rest is raw") {
    BlockPair zeros{"zeros", DType::F32, {}, std::vector<std::byte>(40000)};
    CHECK(round_trip(zeros, false).encoding == Encoding::lz4);
    BlockPair random{"random", DType::F32, {}, pattern(40000, 3)};
    CHECK(round_trip(random, false).encoding == Encoding::raw);
  }

  TEST_CASE("tensors of every small size, also such that are no multiple of their element") {
    for (std::size_t bytes = 1; bytes <= 300; ++bytes) {
      for (const unsigned width : {1u, 2u, 4u, 8u}) {
        BlockPair block{"small", dtype_of_width(width), pattern(bytes, bytes), {}};
        block.next = block.base;
        block.next.front() ^= std::byte{0x10};
        block.next.back() ^= std::byte{0x01};
        if (block.next == block.base) continue;
        CAPTURE(bytes);
        round_trip(block);
      }
    }
  }

  TEST_CASE("the largest block, changed everywhere and nowhere") {
    BlockPair block{"largest", DType::U8, pattern(block_bytes_max, 1), pattern(block_bytes_max, 2)};
    round_trip(block);
    FrameEncoder encoder;
    std::vector<EncodedFrame> frames;
    const BlockInput same{{}, DType::U8, block.base, block.base};
    encoder.encode({&same, 1}, frames);
    CHECK(frames.empty());
  }
}
