// The class encoding alone, without frames: exact for every width, size, density and bit pattern, close to its bound,
// and safe from hostile tables and blocks; and the frequency tables below it.
#include "codec/encoding/class_code.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "codec/kernels/scan.hpp"
#include "tests/codec/sample_blocks.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::tests;

namespace {

struct Coded {
  std::vector<std::byte> tables;
  std::vector<std::vector<std::byte>> blocks;
};

// All blocks under one model, whatever their dtype: a caller may not, the format may.
Coded encode(const std::vector<BlockPair>& pairs) {
  ClassSample sample;
  for (const BlockPair& pair : pairs) {
    sample.add(block_width(pair.dtype, pair.next.size()), pair.base, pair.next, 4096);
  }
  ClassEncoder encoder;
  const auto model = encoder.add_model(sample);
  REQUIRE(model.has_value());
  for (const BlockPair& pair : pairs) {
    ScannedBlock block{pair.dtype, block_width(pair.dtype, pair.next.size()), pair.base, pair.next, {}, 0, {}};
    std::vector<std::uint64_t> mask(kernels::mask_words(block.elements())), expected(mask.size());
    encoder.scan(*model, block, mask.data());
    CHECK(block.changed_count == kernels::scan_changes(pair.base, pair.next, block.width, expected.data()));
    CHECK(mask == expected);
    CHECK(block.target == digest_of(pair.next));
    encoder.collect(block);
  }
  encoder.close();
  Coded out{encoder.tables(), {}};
  for (std::size_t i = 0; i < pairs.size(); ++i) encoder.write(i, out.blocks.emplace_back());
  return out;
}

Result<Digest> decode(Bytes data, Bytes tables, const BlockPair& pair, std::vector<std::byte>& out) {
  const Exact exact_data(data), exact_tables(tables), exact_base(pair.base);
  const auto memory = std::make_unique<std::byte[]>(pair.base.size());
  const MutableBytes exact_out(memory.get(), pair.base.size());
  ClassDecoder decoder;
  const auto decoded = decoder.decode(exact_data.bytes(), exact_tables.bytes(),
                                      block_width(pair.dtype, pair.base.size()), exact_base.bytes(), exact_out);
  out.assign(exact_out.begin(), exact_out.end());
  return decoded;
}

std::size_t check_round_trip(const BlockPair& pair) {
  const Coded coded = encode({pair});
  std::vector<std::byte> out;
  const auto decoded = decode(coded.blocks[0], coded.tables, pair, out);
  REQUIRE(decoded.has_value());
  CHECK(*decoded == digest_of(Bytes(out)));
  CHECK(out == pair.next);
  return coded.blocks[0].size();
}

// Elements that move by small steps, each with this probability.
BlockPair stepped_block(unsigned width, std::size_t elements, double share, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution hit(share);
  BlockPair out{"stepped", dtype_of_width(width), pattern(elements * width, seed + 1), {}};
  out.next = out.base;
  for (std::size_t i = 0; i < elements; ++i) {
    if (hit(random)) move_element(out.next, width, i, random() % 2 == 0 ? 1 + random() % 12 : 0 - 1 - random() % 3);
  }
  if (out.next == out.base) move_element(out.next, width, elements - 1, 1);
  return out;
}

}  // namespace

TEST_SUITE("codec/class") {
  TEST_CASE("every width, block size and density comes back, from one element to several tiles, none to all changed") {
    std::uint64_t seed = 1;
    for (const unsigned width : {1u, 2u, 4u, 8u}) {
      for (const std::size_t elements : {1u, 2u, 63u, 64u, 65u, 127u, 1000u, 8192u, 20001u}) {
        for (const double share : {0.0, 0.001, 0.03, 0.3, 0.7, 0.99, 1.0}) {
          CAPTURE(width);
          CAPTURE(elements);
          CAPTURE(share);
          check_round_trip(stepped_block(width, elements, share, ++seed));
          auto other = scattered_block(width, elements * width, share, ++seed);
          if (other.next == other.base) other.next[0] ^= std::byte{1};
          check_round_trip(other);
        }
      }
    }
  }

  TEST_CASE("NaN payloads, infinities, zeros and subnormals move to each other") {
    check_round_trip(special_values_block());
  }

  TEST_CASE("every BF16 pattern moves by every kind of step") {
    for (const unsigned step : {1u, 2u, 8u, 9u, 100u, 0x7fffu, 0x8000u, 0x8001u, 0xff00u, 0xffffu}) {
      BlockPair block{"all patterns", DType::BF16, std::vector<std::byte>(131072), std::vector<std::byte>(131072)};
      for (std::uint32_t i = 0; i < 65536; ++i) {
        store_le(block.base.data() + 2 * i, static_cast<std::uint16_t>(i * 40503u));
        store_le(block.next.data() + 2 * i, static_cast<std::uint16_t>(i * 40503u + step));
      }
      CAPTURE(step);
      check_round_trip(block);
    }
  }

  TEST_CASE(
      "blocks of one frame share tables and decode alone, in any order, also by a decoder that saw other frames") {
    std::vector<BlockPair> pairs;
    for (std::uint64_t i = 0; i < 5; ++i)
      pairs.push_back(trained_block(4000 + 321 * i, 0.02 + 0.01 * double(i), i + 1));
    pairs.push_back(stepped_block(2, 777, 0.5, 9));
    const Coded coded = encode(pairs);
    const BlockPair other = stepped_block(4, 5000, 0.1, 10);
    const Coded other_coded = encode({other});
    ClassDecoder decoder;
    for (const std::size_t i : {3u, 0u, 5u, 1u, 4u, 2u, 3u}) {
      std::vector<std::byte> out(pairs[i].base.size());
      REQUIRE(decoder.decode(coded.blocks[i], coded.tables, 2, pairs[i].base, out).has_value());
      CHECK(out == pairs[i].next);
      std::vector<std::byte> other_out(other.base.size());
      REQUIRE(decoder.decode(other_coded.blocks[0], other_coded.tables, 4, other.base, other_out).has_value());
      CHECK(other_out == other.next);
    }
  }

  TEST_CASE("trained weights cost what their entropy given the old exponent is, within a twentieth") {
    const BlockPair pair = trained_block(1u << 19, 0.03, 5);
    // The bound: per exponent of the old value, the entropy of "changed", and of the step of those that did.
    std::array<double, 256> members{}, changes{};
    std::array<std::array<double, 64>, 256> steps{};
    double bits = 0;
    for (std::size_t i = 0; i < pair.base.size(); i += 2) {
      const auto base = load_le<std::uint16_t>(pair.base.data() + i),
                 next = load_le<std::uint16_t>(pair.next.data() + i);
      const std::uint8_t key = class_key(base);
      members[key] += 1;
      if (base == next) continue;
      const StepToken step = step_token(base, next);
      changes[key] += 1;
      steps[key][step.token] += 1;
      bits += step.raw_bits;
    }
    for (std::size_t key = 0; key < 256; ++key) {
      const double n = members[key], k = changes[key];
      if (k > 0 && k < n) bits -= k * std::log2(k / n) + (n - k) * std::log2(1 - k / n);
      for (const double s : steps[key]) {
        if (s > 0) bits -= s * std::log2(s / k);
      }
    }
    const Coded coded = encode({pair});
    const auto bytes = static_cast<double>(coded.blocks[0].size() + coded.tables.size());
    CAPTURE(bytes / (bits / 8));
    CHECK(bytes <= bits / 8 * 1.05);
    CHECK(bytes >= bits / 8 * 0.98);
  }

  TEST_CASE("truncated anywhere, or one byte longer, a block is refused") {
    const BlockPair pair = stepped_block(2, 600, 0.2, 3);
    const Coded coded = encode({pair});
    std::vector<std::byte> out;
    for (std::size_t size = 0; size < coded.blocks[0].size(); ++size) {
      CAPTURE(size);
      const auto decoded = decode(Bytes(coded.blocks[0]).first(size), coded.tables, pair, out);
      CHECK_FALSE((decoded.has_value() && out == pair.next));
    }
    auto longer = coded.blocks[0];
    longer.push_back(std::byte{0});
    CHECK_FALSE(decode(longer, coded.tables, pair, out).has_value());
    for (std::size_t size = 0; size < coded.tables.size(); ++size) {
      CHECK_FALSE(decode(coded.blocks[0], Bytes(coded.tables).first(size), pair, out).has_value());
    }
    auto longer_tables = coded.tables;
    longer_tables.push_back(std::byte{0});
    CHECK(decode(coded.blocks[0], longer_tables, pair, out).error() == errc::trailing_bytes);
  }

  TEST_CASE("a flipped bit anywhere is refused or gives another block, and leaves nothing behind in the decoder") {
    for (const unsigned width : {1u, 2u, 4u, 8u}) {
      const BlockPair pair = stepped_block(width, 700, 0.1, width);
      const Coded coded = encode({pair});
      ClassDecoder decoder;
      const auto decode_here = [&](Bytes data, Bytes tables) {
        const Exact exact_data(data), exact_tables(tables);
        std::vector<std::byte> out(pair.base.size());
        const auto decoded = decoder.decode(exact_data.bytes(), exact_tables.bytes(), width, pair.base, out);
        return decoded.has_value() && out == pair.next;
      };
      for (std::size_t bit = 0; bit < coded.blocks[0].size() * 8; ++bit) {
        auto data = coded.blocks[0];
        data[bit / 8] ^= std::byte{1} << (bit % 8);
        CHECK_FALSE(decode_here(data, coded.tables));
      }
      std::size_t same = 0;
      for (std::size_t bit = 0; bit < coded.tables.size() * 8; ++bit) {
        auto tables = coded.tables;
        tables[bit / 8] ^= std::byte{1} << (bit % 8);
        same += decode_here(coded.blocks[0], tables) ? 1 : 0;
        CHECK(decode_here(coded.blocks[0], coded.tables));
      }
      // Boundaries between keys that no element has may move without effect.
      CHECK(same <= 64);
    }
  }

  TEST_CASE("a decoder asks for no more than the block: counts past its elements are refused before they are decoded") {
    const BlockPair pair = stepped_block(2, 100, 0.5, 3);
    const Coded coded = encode({pair});
    auto data = coded.blocks[0];
    std::vector<std::byte> huge;
    ByteWriter writer(huge);
    writer.u8(std::to_integer<std::uint8_t>(data[0]));
    writer.varint(std::uint64_t{1} << 40);
    writer.bytes(Bytes(data).subspan(2));
    std::vector<std::byte> out;
    CHECK(decode(huge, coded.tables, pair, out).error() == errc::malformed_payload);
  }
}

TEST_SUITE("codec/frequencies") {
  TEST_CASE("they add up, keep every token that occurs, and are read as they were written") {
    std::mt19937_64 random(1);
    for (unsigned trial = 0; trial < 300; ++trial) {
      std::vector<std::uint32_t> counts(1 + random() % 256);
      for (auto& count : counts) count = random() % 3 == 0 ? 0 : static_cast<std::uint32_t>(1u << (random() % 31));
      Frequencies fitted;
      fitted.fit(counts);
      std::uint32_t sum = 0;
      bool any = false;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        CHECK((fitted.of[i] != 0) == (counts[i] != 0));
        sum += fitted.of[i];
        any |= counts[i] != 0;
      }
      CHECK(sum == (any ? kernels::rans_one : 0));

      std::vector<std::byte> bytes(frequencies_bytes_max + BitWriter::slack_bytes);
      BitWriter writer(bytes);
      fitted.write(writer);
      bytes.resize(writer.finish());
      BitReader reader(bytes);
      Frequencies again;
      REQUIRE(again.read(reader, 256));
      CHECK(reader.finish().has_value());
      CHECK(again.of == fitted.of);
      BitReader other(bytes);
      CHECK((fitted.count == 0 || !again.read(other, fitted.count - 1)));
    }
  }

  TEST_CASE("what does not add up is refused") {
    Frequencies frequencies;
    frequencies.of[0] = 1000;
    frequencies.of[1] = 1000;
    frequencies.count = 2;
    std::vector<std::byte> bytes(frequencies_bytes_max + BitWriter::slack_bytes);
    BitWriter writer(bytes);
    frequencies.write(writer);
    BitReader reader(bytes);
    CHECK_FALSE(frequencies.read(reader, 256));
  }
}
