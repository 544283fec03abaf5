// The portable coder, symbol by symbol, and the choice of kernel.
#include "codec/kernels/rans.hpp"

#include <array>

#include "codec/bytes.hpp"
#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec::kernels {
namespace {

// Division by a frequency as a multiplication: floor(x / f) is exact for every x < f << (32 - rans_bits), which is what
// renormalisation leaves. The rounding error, x / 2^43 < f / 2^22, stays below 1 / f for f < 2^11, and is zero for
// 2^11.
constexpr unsigned reciprocal_bits = 43;
constexpr auto reciprocals_of_frequencies = [] {
  std::array<std::uint64_t, rans_one + 1> out{};
  for (std::uint64_t f = 1; f <= rans_one; ++f) out[f] = ((std::uint64_t{1} << reciprocal_bits) + f - 1) / f;
  return out;
}();

}  // namespace

void rans_decode_portable(RansDecoding& from, const std::uint32_t* tables, const std::uint8_t* contexts,
                          std::size_t first, std::size_t count, std::uint8_t* out) noexcept {
  const std::byte* words = from.words;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t& state = from.states[(first + i) & (from.lanes - 1)];
    const std::uint32_t* const table = contexts == nullptr ? tables : tables + std::size_t{contexts[i]} * rans_one;
    const std::uint32_t slot = table[state & (rans_one - 1)];
    std::uint32_t next = (((slot >> 12) & 0xfff) + 1) * (state >> rans_bits) + (slot & 0xfff);
    if (next < rans_state_min) {
      next <<= 16;
      if (words != from.end) {
        next |= load_le<std::uint16_t>(words);
        words += 2;
      } else {
        from.overrun = true;
      }
    }
    state = next;
    out[i] = static_cast<std::uint8_t>(slot >> 24);
  }
  from.words = words;
}

void rans_encode_portable(RansEncoding& to, const std::uint32_t* ranges, const std::uint16_t* symbols,
                          std::size_t count) noexcept {
  std::byte* words = to.words;
  for (std::size_t i = count; i-- > 0;) {
    std::uint32_t& state = to.states[i & (to.lanes - 1)];
    const std::uint32_t range = ranges[symbols[i]];
    const std::uint32_t frequency = range & 0xffff, before = range >> 16;
    std::uint32_t x = state;
    if (x >= std::uint64_t{frequency} << (32 - rans_bits)) {
      words -= 2;
      store_le(words, static_cast<std::uint16_t>(x));
      x >>= 16;
    }
    const auto quotient = static_cast<std::uint32_t>((x * reciprocals_of_frequencies[frequency]) >> reciprocal_bits);
    state = x + before + quotient * (rans_one - frequency);
  }
  to.words = words;
}

void rans_decode(RansDecoding& from, const std::uint32_t* tables, const std::uint8_t* contexts, std::size_t first,
                 std::size_t count, std::uint8_t* out) noexcept {
#if defined(__x86_64__)
  static const RansDecodeKernel kernel = cpu_level() == CpuLevel::avx512 ? rans_decode_avx512 : rans_decode_portable;
  kernel(from, tables, contexts, first, count, out);
#else
  rans_decode_portable(from, tables, contexts, first, count, out);
#endif
}

void rans_encode(RansEncoding& to, const std::uint32_t* ranges, const std::uint16_t* symbols,
                 std::size_t count) noexcept {
#if defined(__x86_64__)
  static const RansEncodeKernel kernel = cpu_level() == CpuLevel::avx512 ? rans_encode_avx512 : rans_encode_portable;
  kernel(to, ranges, symbols, count);
#else
  rans_encode_portable(to, ranges, symbols, count);
#endif
}

}  // namespace deltarelay::codec::kernels
