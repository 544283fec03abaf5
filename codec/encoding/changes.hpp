// What the scan of one block found, and the vocabulary that the encodings of changes share.
//
// A change is a gap (unchanged elements before it) and a step: the difference of the bit patterns modulo 2^(8 * width),
// signed. Nothing here looks at a value as a number with a meaning; NaN payloads and -0.0 are patterns like any other.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "codec/digest.hpp"
#include "codec/dtype.hpp"
#include "codec/kernels/cpu.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

/// The unit of comparing and stepping: the dtype's width, or bytes where the block is no multiple of it.
[[nodiscard]] inline unsigned block_width(DType dtype, std::size_t bytes) noexcept {
  const unsigned width = element_width(dtype);
  return bytes % width == 0 ? width : 1;
}

/// A block against its base, scanned.
struct ScannedBlock {
  DType dtype{};
  unsigned width = 1;
  Bytes base, next;                        ///< equal sizes, a multiple of width
  std::span<const std::uint64_t> changed;  ///< kernels::scan_changes()
  std::size_t changed_count = 0;
  Digest target;  ///< of next; set where something changed

  [[nodiscard]] std::size_t elements() const noexcept { return next.size() / width; }
};

/// Room that positions_of() may write past the last position.
inline constexpr std::size_t position_slack = 24;

/// Writes the positions of the set bits, ascending, and returns how many. REQUIRES room for all of them and
/// position_slack more. Four at a time without asking how many there are: with a few changes per word, a loop that ends
/// when the bits are used up would be mispredicted once per word.
DELTARELAY_HOT inline std::size_t positions_of(std::span<const std::uint64_t> changed, std::uint32_t* out) noexcept {
  std::uint32_t* const begin = out;
  for (std::size_t word = 0; word < changed.size(); ++word) {
    std::uint64_t bits = changed[word];
    const auto count = static_cast<std::size_t>(std::popcount(bits));
    const auto first = static_cast<std::uint32_t>(word * 64);
    for (std::size_t at = 0; at < count; at += 4) {
      for (std::size_t i = 0; i < 4; ++i) {
        out[at + i] = first + static_cast<std::uint32_t>(std::countr_zero(bits));
        bits &= bits - 1;
      }
    }
    out += count;
  }
  return static_cast<std::size_t>(out - begin);
}

/// A step as a token and its raw bits. Magnitudes 1..8 have tokens of their own, by sign; larger ones one token per
/// power of two and sign, with the bits below the leading one raw.
struct StepToken {
  std::uint8_t token = 0;
  std::uint8_t raw_bits = 0;
  std::uint64_t raw = 0;
};
inline constexpr unsigned small_step_tokens = 16;

/// Tokens that steps of this width can have: 26, 42, 74 or 138.
[[nodiscard]] constexpr unsigned step_token_count(unsigned width) noexcept {
  return small_step_tokens + 2 * (8 * width - 3);
}
[[nodiscard]] constexpr unsigned step_raw_bits(unsigned token) noexcept {
  return token < small_step_tokens ? 0 : (token - small_step_tokens) / 2 + 3;
}

template <class Element>
[[nodiscard]] DELTARELAY_HOT inline StepToken step_token(Element base, Element next) noexcept {
  const auto step = static_cast<Element>(next - base);
  const bool negative = (step >> (8 * sizeof(Element) - 1)) != 0;
  const std::uint64_t magnitude = negative ? static_cast<Element>(Element{0} - step) : step;
  const unsigned sign = negative ? 1 : 0;
  if (magnitude <= 8) return {static_cast<std::uint8_t>((magnitude - 1) * 2 + sign), 0, 0};
  const auto raw_bits = static_cast<unsigned>(std::bit_width(magnitude) - 1);
  return {static_cast<std::uint8_t>(small_step_tokens + (raw_bits - 3) * 2 + sign), static_cast<std::uint8_t>(raw_bits),
          magnitude ^ (std::uint64_t{1} << raw_bits)};
}
/// The signed step as a two's complement pattern; its low bytes are what is added to the old pattern.
[[nodiscard]] constexpr std::uint64_t step_of(unsigned token, std::uint64_t raw) noexcept {
  const std::uint64_t magnitude =
      token < small_step_tokens ? token / 2 + 1 : (std::uint64_t{1} << step_raw_bits(token)) | raw;
  return (token & 1) != 0 ? std::uint64_t{0} - magnitude : magnitude;
}

}  // namespace deltarelay::codec
