// The kernels of the class encoding: the portable ones against their purpose, all others against the portable ones, bit
// for bit.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "codec/encoding/class_model.hpp"
#include "codec/kernels/class_scan.hpp"
#include "codec/kernels/cpu.hpp"
#include "tests/codec/sample_blocks.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::codec::kernels;
using namespace deltarelay::tests;

namespace {

constexpr std::size_t slack = 64;

struct Content {
  unsigned width = 2;
  std::size_t elements = 0;
  std::vector<std::byte> base, next;
  std::vector<std::uint64_t> changed;
  std::size_t changed_count = 0;
  ClassMap map;
};

// Keys crowd into few classes or spread over all; between none and all of the elements change.
Content content(unsigned width, std::size_t words, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Content out{width, words * 64, pattern(words * 64 * width, seed), {}, std::vector<std::uint64_t>(words), 0, {}};
  if (seed % 3 == 0) {
    for (std::size_t i = width - 1; i < out.base.size(); i += width)
      out.base[i] = static_cast<std::byte>(0x3c + random() % 3);
  }
  out.next = pattern(out.base.size(), seed + 1000);
  for (auto& word : out.changed) {
    word = seed % 5 == 0 ? ~std::uint64_t{0} : seed % 5 == 1 ? 0 : random() & random();
    if (seed % 5 == 2) word &= random() & random();
    out.changed_count += static_cast<std::size_t>(std::popcount(word));
  }
  KeyParts parts;
  std::uint8_t key = seed % 3 == 0 ? 0x74 : 0;
  for (unsigned part = 1; part < 1 + seed % classes_max; ++part) {
    key = static_cast<std::uint8_t>(key + 1 + random() % (seed % 3 == 0 ? 2 : 30));
    parts.first_key[part] = key;
    parts.count = part + 1;
  }
  out.map = class_map(parts);
  return out;
}

struct Split {
  std::vector<std::vector<std::uint32_t>> ranks;
  std::array<std::uint32_t, classes_max> members{};
  std::vector<std::uint8_t> keys;
  std::vector<std::byte> steps;
  friend bool operator==(const Split&, const Split&) = default;
};

Split split_with(const ClassKernels& kernels, const Content& given) {
  Split out;
  ClassSplit split;
  out.ranks.assign(classes_max, std::vector<std::uint32_t>(given.changed_count + slack));
  for (unsigned c = 0; c < classes_max; ++c) split.ranks[c] = out.ranks[c].data();
  out.keys.resize(given.changed_count + slack);
  out.steps.resize(given.changed_count * given.width + slack);
  split.keys = out.keys.data();
  split.steps = out.steps.data();
  const Exact base(given.base), next(given.next);
  kernels.split(given.map, base.bytes().data(), next.bytes().data(), given.width, given.elements, given.changed.data(),
                split);
  for (unsigned c = 0; c < classes_max; ++c) {
    out.ranks[c].resize(static_cast<std::size_t>(split.ranks[c] - out.ranks[c].data()));
  }
  out.members = split.members;
  out.keys.resize(static_cast<std::size_t>(split.keys - out.keys.data()));
  out.steps.resize(static_cast<std::size_t>(split.steps - out.steps.data()));
  return out;
}

struct Found {
  std::vector<std::uint64_t> changed;
  std::array<std::uint32_t, classes_max> members{};
  std::vector<std::uint8_t> keys;
  friend bool operator==(const Found&, const Found&) = default;
};

Found find_with(const ClassKernels& kernels, const Content& given, Bytes marks_bytes, std::size_t stride_bytes) {
  Found out;
  ClassMarks marks;
  marks.bits = marks_bytes.data();
  marks.stride_bytes = stride_bytes;
  out.changed.resize(given.changed.size());
  out.keys.resize(given.elements + slack);
  const Exact base(given.base);
  out.keys.resize(kernels.find(given.map, base.bytes().data(), given.width, given.elements, marks, out.changed.data(),
                               out.keys.data()));
  out.members = marks.members;
  return out;
}

// The marks that belong to a split.
std::vector<std::byte> marks_of(const Split& split, std::size_t stride_bytes) {
  std::vector<std::byte> out(stride_bytes * classes_max);
  for (unsigned c = 0; c < classes_max; ++c) {
    for (const std::uint32_t rank : split.ranks[c]) out[c * stride_bytes + rank / 8] |= std::byte{1} << (rank % 8);
  }
  return out;
}

std::vector<std::byte> apply_with(const ClassKernels& kernels, const Content& given,
                                  const std::vector<std::byte>& steps) {
  std::vector<std::byte> out(given.base.size()), room = steps;
  room.resize(steps.size() + slack);
  const Exact base(given.base);
  CHECK(kernels.apply(base.bytes().data(), given.width, given.elements, given.changed.data(), room.data(),
                      out.data()) == given.changed_count);
  return out;
}

// A set of kernels against the portable one, and the portable one against what split and find are for.
void check_kernels(const ClassKernels& kernels, unsigned width_max) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    for (unsigned width = 1; width <= width_max; width *= 2) {
      const Content given = content(width, 1 + seed % 70, seed);
      CAPTURE(seed);
      CAPTURE(width);
      const Split split = split_with(class_kernels_portable, given);
      CHECK(split_with(kernels, given) == split);

      const std::size_t stride = given.elements / 8 + 16;
      const auto marks = marks_of(split, stride);
      const Found found = find_with(class_kernels_portable, given, marks, stride);
      CHECK(found.changed == given.changed);
      CHECK(found.keys == split.keys);
      CHECK(found.members == split.members);
      CHECK(find_with(kernels, given, marks, stride) == found);
      // Marks that no encoder made.
      const auto noise = pattern(stride * classes_max, seed + 7);
      CHECK(find_with(kernels, given, noise, stride) == find_with(class_kernels_portable, given, noise, stride));

      const auto applied = apply_with(class_kernels_portable, given, split.steps);
      CHECK(apply_with(kernels, given, split.steps) == applied);
      for (std::size_t i = 0; i < given.elements; ++i) {
        const auto& wanted = (given.changed[i / 64] >> (i % 64) & 1) != 0 ? given.next : given.base;
        REQUIRE(std::equal(applied.begin() + static_cast<std::ptrdiff_t>(i * width),
                           applied.begin() + static_cast<std::ptrdiff_t>((i + 1) * width),
                           wanted.begin() + static_cast<std::ptrdiff_t>(i * width)));
      }
    }
  }
}

// Symbols of 3 contexts, skewed differently, through an encoder and a decoder.
void check_rans(RansEncodeKernel encode, RansDecodeKernel decode) {
  for (const unsigned lanes : {1u, 2u, 4u, 8u, 16u, 32u}) {
    for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 31u, 32u, 33u, 100u, 5000u}) {
      CAPTURE(lanes);
      CAPTURE(count);
      std::mt19937_64 random(count + lanes);
      std::array<Frequencies, 3> tables;
      std::vector<std::uint32_t> ranges(3 * tokens_max), slots(3 * rans_one);
      for (std::size_t c = 0; c < 3; ++c) {
        std::vector<std::uint32_t> counts(c == 2 ? 1 : 40);
        for (std::size_t t = 0; t < counts.size(); ++t) counts[t] = c == 0 ? 1u : 1u << (20 - t / 2);
        tables[c].fit(counts);
        tables[c].fill_ranges(std::span(ranges).subspan(c * tokens_max));
        tables[c].fill_slots(std::span(slots).subspan(c * rans_one, rans_one));
      }
      std::vector<std::uint16_t> symbols(count);
      std::vector<std::uint8_t> contexts(count), tokens(count);
      for (std::size_t i = 0; i < count; ++i) {
        contexts[i] = static_cast<std::uint8_t>(random() % 3);
        tokens[i] = static_cast<std::uint8_t>(contexts[i] == 2 ? 0 : std::countr_zero(random() | 1ull << 39));
        symbols[i] = static_cast<std::uint16_t>(contexts[i] * tokens_max + tokens[i]);
      }
      std::vector<std::byte> words(2 * count + 64);
      auto coder = begin_rans(lanes, words.data() + words.size());
      encode(coder, ranges.data(), symbols.data(), count);

      std::vector<std::byte> same_words(words.size());
      auto same = begin_rans(lanes, same_words.data() + same_words.size());
      rans_encode_portable(same, ranges.data(), symbols.data(), count);
      CHECK(same.states == coder.states);
      const auto used = static_cast<std::size_t>(words.data() + words.size() - coder.words);
      REQUIRE(used == static_cast<std::size_t>(same_words.data() + same_words.size() - same.words));
      CHECK(std::memcmp(same.words, coder.words, used) == 0);

      const Exact exact(Bytes(coder.words, used));
      // In two parts, the second of which begins in any lane.
      const std::size_t first = count == 0 ? 0 : random() % count;
      RansDecoding from{coder.states, lanes, exact.bytes().data(), exact.bytes().data() + used, false};
      std::vector<std::uint8_t> out(count);
      decode(from, slots.data(), contexts.data(), 0, first, out.data());
      decode(from, slots.data(), contexts.data() + first, first, count - first, out.data() + first);
      CHECK(out == tokens);
      CHECK(finish_rans(from).has_value());

      // Fewer words than symbols want: zeros, and said so, by every kernel alike.
      if (used < 2) continue;
      const Exact cut(Bytes(coder.words, used - 2));
      RansDecoding short_a{coder.states, lanes, cut.bytes().data(), cut.bytes().data() + used - 2, false};
      RansDecoding short_b = short_a;
      std::vector<std::uint8_t> other(count);
      decode(short_a, slots.data(), contexts.data(), 0, count, out.data());
      rans_decode_portable(short_b, slots.data(), contexts.data(), 0, count, other.data());
      CHECK(short_a.overrun);
      CHECK(out == other);
      CHECK(short_a.states == short_b.states);
    }
  }
}

bool has_avx2() {
  if (cpu_level() >= CpuLevel::avx2) return true;
  MESSAGE("this processor lacks AVX2; skipped");
  return false;
}

}  // namespace

TEST_SUITE("codec/class kernels") {
  TEST_CASE("portable: changes become ranks, marks become changes again") {
    check_kernels(class_kernels_portable, 8);
  }
  TEST_CASE("portable: rANS gives back what it was given, with any number of lanes") {
    check_rans(rans_encode_portable, rans_decode_portable);
  }
  TEST_CASE("the kernels chosen for this processor code alike") {
    check_rans(rans_encode, rans_decode);
  }
#if defined(__x86_64__)
  TEST_CASE("AVX2: the same ranks, masks and blocks as the portable kernels") {
    if (has_avx2()) check_kernels(class_kernels_avx2, class_width_max);
  }
  TEST_CASE("AVX-512: the same ranks, masks and blocks as the portable kernels") {
    if (class_kernels_avx512_run_here()) {
      check_kernels(class_kernels_avx512, class_width_max);
    } else {
      MESSAGE("this processor lacks VBMI2 or GFNI; skipped");
    }
  }
  TEST_CASE("AVX-512: rANS words and states are those of the portable coder") {
    if (cpu_level() == CpuLevel::avx512) {
      check_rans(rans_encode_avx512, rans_decode_avx512);
      check_rans(rans_encode_portable, rans_decode_avx512);
    } else {
      MESSAGE("this processor lacks AVX-512; skipped");
    }
  }
#endif
}
