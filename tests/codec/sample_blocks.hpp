// Old and new blocks for round trips: what training does to weights, and what it never should.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "codec/bytes.hpp"
#include "codec/dtype.hpp"
#include "tests/codec/octets.hpp"

namespace deltarelay::tests {

struct BlockPair {
  std::string name;
  codec::DType dtype{};
  std::vector<std::byte> base, next;
};

inline codec::DType dtype_of_width(unsigned width) {
  using codec::DType;
  return width == 1 ? DType::F8_E4M3 : width == 2 ? DType::BF16 : width == 4 ? DType::F32 : DType::F64;
}

/// BF16 weights, normal with the spread of a trained matrix, under an update that has one size whatever the weight:
/// what an optimizer step leaves of FP32 masters after rounding.
inline BlockPair trained_block(std::size_t elements, double changed_share, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> weight(0.0f, 0.02f), update(0.0f, static_cast<float>(changed_share * 2e-4));
  BlockPair out{"trained", codec::DType::BF16, std::vector<std::byte>(2 * elements),
                std::vector<std::byte>(2 * elements)};
  const auto rounded = [](float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  };
  for (std::size_t i = 0; i < elements; ++i) {
    const float master = weight(random);
    codec::store_le(out.base.data() + 2 * i, rounded(master));
    codec::store_le(out.next.data() + 2 * i, rounded(master + update(random)));
  }
  return out;
}

/// Each element changed with probability `share`, by a pattern drawn from all patterns: no step is small.
inline BlockPair scattered_block(unsigned width, std::size_t bytes, double share, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution hit(share);
  BlockPair out{"scattered", dtype_of_width(width), pattern(bytes, seed + 1), {}};
  out.next = out.base;
  for (std::size_t at = 0; at + width <= bytes; at += width) {
    if (!hit(random)) continue;
    for (unsigned i = 0; i < width; ++i) out.next[at + i] = static_cast<std::byte>(random());
  }
  return out;
}

/// One element at `position` moved by `step`, modulo 2^(8 * width).
inline void move_element(std::vector<std::byte>& block, unsigned width, std::size_t position, std::uint64_t step) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < width; ++i) value |= std::to_integer<std::uint64_t>(block[position * width + i]) << (8 * i);
  value += step;
  for (unsigned i = 0; i < width; ++i) block[position * width + i] = static_cast<std::byte>(value >> (8 * i));
}

/// Every special BF16 pattern to every other: quiet and signalling NaNs with payloads, infinities, zeros, subnormals.
inline BlockPair special_values_block() {
  const std::uint16_t specials[] = {0x0000, 0x8000, 0x7f80, 0xff80, 0x7f81, 0xff81, 0x7fc0, 0xffc0,
                                    0x7fff, 0xffff, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x7f7f};
  BlockPair out{"special values", codec::DType::BF16, {}, {}};
  codec::ByteWriter base(out.base), next(out.next);
  for (const std::uint16_t from : specials) {
    for (const std::uint16_t to : specials) {
      base.u16(from);
      next.u16(to);
    }
  }
  return out;
}

}  // namespace deltarelay::tests
