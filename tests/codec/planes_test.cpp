// Planes: exact for every width and size, about two thirds of BF16 weights, never taken for noise, safe from hostile
// bytes.
#include "codec/encoding/planes.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "codec/frame.hpp"
#include "tests/codec/sample_blocks.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::tests;

namespace {

// Bytes of few kinds in every place but the lowest.
std::vector<std::byte> skewed(unsigned width, std::size_t elements, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto out = pattern(width * elements, seed + 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (width == 1 || i % width != 0) out[i] = static_cast<std::byte>(0x30 + std::countr_zero(random() | 256));
  }
  return out;
}

Result<void> decode(Bytes data, unsigned width, std::size_t bytes, std::vector<std::byte>& out) {
  const Exact exact(data);
  const auto memory = std::make_unique<std::byte[]>(bytes);
  const MutableBytes exact_out(memory.get(), bytes);
  PlanesDecoder decoder;
  const auto decoded = decoder.decode(exact.bytes(), width, exact_out);
  out.assign(exact_out.begin(), exact_out.end());
  return decoded;
}

}  // namespace

TEST_SUITE("codec/planes") {
  TEST_CASE("every width and size comes back, by an encoder and a decoder that have done others") {
    PlanesEncoder encoder;
    PlanesDecoder decoder;
    std::size_t coded = 0;
    for (const unsigned width : {1u, 2u, 4u, 8u}) {
      for (const std::size_t elements : {1u, 31u, 500u, 8191u, 8192u, 8193u, 30000u}) {
        CAPTURE(width);
        CAPTURE(elements);
        const auto next = skewed(width, elements, width + elements);
        std::vector<std::byte> data{std::byte{7}};
        if (!encoder.encode(next, width, next.size(), data)) {
          CHECK(data.size() == 1);
          continue;
        }
        ++coded;
        CHECK(data.size() - 1 <= next.size());
        std::vector<std::byte> out(next.size());
        REQUIRE(decoder.decode(Bytes(data).subspan(1), width, out).has_value());
        CHECK(out == next);
        CHECK_FALSE(encoder.encode(next, width, data.size() - 2, data));
      }
    }
    CHECK(coded >= 16);
  }

  TEST_CASE("BF16 weights without a base take two thirds, and travel as planes") {
    const BlockPair weights = trained_block(1u << 18, 0.01, 3);
    FrameEncoder encoder;
    std::vector<EncodedFrame> frames;
    const BlockInput input{{}, DType::BF16, {}, weights.next};
    encoder.encode({&input, 1}, frames);
    const auto view = FrameView::parse(frames.at(0).payload);
    REQUIRE(view.has_value());
    CHECK(view->entries[0].encoding == Encoding::dense_planes);
    CHECK(view->entries[0].data.size() < weights.next.size() * 68 / 100);
    std::vector<std::byte> out(weights.next.size());
    BlockDecoder decoder;
    REQUIRE(decoder.decode(view->entries[0], {}, DType::BF16, {}, out).has_value());
    CHECK(out == weights.next);
  }

  TEST_CASE("noise is left to raw") {
    PlanesEncoder encoder;
    std::vector<std::byte> data;
    for (const unsigned width : {1u, 2u, 4u, 8u})
      CHECK_FALSE(encoder.encode(pattern(40000, width), width, 40000, data));
    CHECK(data.empty());
  }

  TEST_CASE("truncated anywhere, one byte longer, or with a flipped bit, planes are refused or give another block") {
    PlanesEncoder encoder;
    const auto next = skewed(4, 700, 1);
    std::vector<std::byte> data, out;
    REQUIRE(encoder.encode(next, 4, next.size(), data));
    for (std::size_t size = 0; size < data.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(decode(Bytes(data).first(size), 4, next.size(), out).has_value());
    }
    auto longer = data;
    longer.push_back(std::byte{0});
    CHECK(decode(longer, 4, next.size(), out).error() == errc::trailing_bytes);
    for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
      auto flipped = data;
      flipped[bit / 8] ^= std::byte{1} << (bit % 8);
      const bool same = decode(flipped, 4, next.size(), out).has_value() && out == next;
      CHECK_FALSE(same);
    }
  }
}
