// Interleaved rANS: the entropy coder below the class and planes encodings. FORMAT.md, "rANS".
//
// Symbol i of a run is coded in lane i mod lanes, each lane a 32-bit state of its own; all lanes share one sequence of
// 16-bit words in the order in which a decoder that goes symbol by symbol wants them. Lanes are independent chains, so
// a plain core overlaps them and a vector unit takes 16 at once; every kernel reads and writes the same words. Pure
// functions on the states that they are given. A decoder never reads past `end`: it sees zeros and says overrun.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace deltarelay::codec::kernels {

inline constexpr unsigned rans_bits = 11;  ///< frequencies of a table add up to 2^11
inline constexpr std::uint32_t rans_one = 1u << rans_bits;
inline constexpr unsigned rans_lanes_max = 32;
inline constexpr std::uint32_t rans_state_min = 1u << 16;

/// An entry of a decoding table, one per slot below rans_one: place of the slot within its token's range, frequency of
/// the token less one, token.
[[nodiscard]] constexpr std::uint32_t rans_slot(std::uint32_t place, std::uint32_t frequency,
                                                std::uint32_t token) noexcept {
  return place | (frequency - 1) << 12 | token << 24;
}
/// An entry of an encoding table, one per symbol: frequency, and the sum of those before it.
[[nodiscard]] constexpr std::uint32_t rans_range(std::uint32_t frequency, std::uint32_t first) noexcept {
  return frequency | first << 16;
}

struct RansDecoding {
  std::array<std::uint32_t, rans_lanes_max> states{};
  unsigned lanes = 1;  ///< a power of two
  const std::byte* words = nullptr;
  const std::byte* end = nullptr;  ///< a whole number of words after `words`
  bool overrun = false;
};
/// Decodes `count` symbols, of which the first has index `first` in its run, into out. Symbol i comes from the table at
/// tables + contexts[i] * rans_one, or from the first where contexts is null.
void rans_decode(RansDecoding& from, const std::uint32_t* tables, const std::uint8_t* contexts, std::size_t first,
                 std::size_t count, std::uint8_t* out) noexcept;

struct RansEncoding {
  std::array<std::uint32_t, rans_lanes_max> states{};
  unsigned lanes = 1;
  std::byte* words = nullptr;  ///< the lowest word written; goes down by at most one word per symbol
};
/// Encodes a run of symbols, the last first: symbols[i] is an index into `ranges`. Runs are encoded in the reverse of
/// the order in which they are decoded. REQUIRES room below
/// `to.words` for a word per symbol, and 64 bytes more.
void rans_encode(RansEncoding& to, const std::uint32_t* ranges, const std::uint16_t* symbols,
                 std::size_t count) noexcept;

using RansDecodeKernel = decltype(&rans_decode);
using RansEncodeKernel = decltype(&rans_encode);
void rans_decode_portable(RansDecoding& from, const std::uint32_t* tables, const std::uint8_t* contexts,
                          std::size_t first, std::size_t count, std::uint8_t* out) noexcept;
void rans_encode_portable(RansEncoding& to, const std::uint32_t* ranges, const std::uint16_t* symbols,
                          std::size_t count) noexcept;
#if defined(__x86_64__)
void rans_decode_avx512(RansDecoding& from, const std::uint32_t* tables, const std::uint8_t* contexts,
                        std::size_t first, std::size_t count, std::uint8_t* out) noexcept;
void rans_encode_avx512(RansEncoding& to, const std::uint32_t* ranges, const std::uint16_t* symbols,
                        std::size_t count) noexcept;
#endif

}  // namespace deltarelay::codec::kernels
