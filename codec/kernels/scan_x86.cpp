// The scan for AVX2 and AVX-512. Each function is compiled for its own target, so the file needs no special options;
// kernels/cpu.hpp decides which one runs.
#include "codec/kernels/scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace deltarelay::codec::kernels {
namespace {

// Prefetching this far ahead gains a tenth over the hardware's own prefetcher on two streams.
constexpr std::size_t prefetch_bytes = 2048;

inline void prefetch(const std::byte* p) noexcept {
  _mm_prefetch(reinterpret_cast<const char*>(p) + prefetch_bytes, _MM_HINT_T0);
}

#define DELTARELAY_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt,bmi,bmi2")))
#define DELTARELAY_AVX2 __attribute__((target("avx2,popcnt,bmi,bmi2")))

template <unsigned width>
DELTARELAY_AVX512 std::size_t scan512(const std::byte* base, const std::byte* next, std::size_t words,
                                      std::uint64_t* mask) {
  constexpr unsigned lanes = 64 / width;
  std::size_t changed = 0;
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t bits = 0;
    for (unsigned first = 0; first < 64; first += lanes, base += 64, next += 64) {
      prefetch(base);
      prefetch(next);
      const __m512i a = _mm512_loadu_si512(base), b = _mm512_loadu_si512(next);
      std::uint64_t m;
      if constexpr (width == 1) m = _mm512_cmpneq_epi8_mask(a, b);
      if constexpr (width == 2) m = _mm512_cmpneq_epi16_mask(a, b);
      if constexpr (width == 4) m = _mm512_cmpneq_epi32_mask(a, b);
      if constexpr (width == 8) m = _mm512_cmpneq_epi64_mask(a, b);
      bits |= m << first;
    }
    mask[word] = bits;
    changed += static_cast<std::size_t>(_mm_popcnt_u64(bits));
  }
  return changed;
}

// One bit per byte of 64 bytes, then one per element: a byte's bit is the OR of its element's, and pext gathers them.
template <unsigned width>
DELTARELAY_AVX2 std::size_t scan256(const std::byte* base, const std::byte* next, std::size_t words,
                                    std::uint64_t* mask) {
  constexpr unsigned lanes = 64 / width;
  constexpr std::uint64_t lane_ones = width == 1   ? ~0ull
                                      : width == 2 ? 0x5555555555555555ull
                                      : width == 4 ? 0x1111111111111111ull
                                                   : 0x0101010101010101ull;
  std::size_t changed = 0;
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t bits = 0;
    for (unsigned first = 0; first < 64; first += lanes, base += 64, next += 64) {
      prefetch(base);
      prefetch(next);
      const auto* a = reinterpret_cast<const __m256i*>(base);
      const auto* b = reinterpret_cast<const __m256i*>(next);
      const __m256i low = _mm256_cmpeq_epi8(_mm256_loadu_si256(a), _mm256_loadu_si256(b));
      const __m256i high = _mm256_cmpeq_epi8(_mm256_loadu_si256(a + 1), _mm256_loadu_si256(b + 1));
      std::uint64_t m = ~(static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
                          static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(high))) << 32);
      if constexpr (width >= 2) m |= m >> 1;
      if constexpr (width >= 4) m |= m >> 2;
      if constexpr (width >= 8) m |= m >> 4;
      bits |= (width == 1 ? m : _pext_u64(m, lane_ones)) << first;
    }
    mask[word] = bits;
    changed += static_cast<std::size_t>(_mm_popcnt_u64(bits));
  }
  return changed;
}

}  // namespace

std::size_t scan_avx512(const std::byte* base, const std::byte* next, std::size_t words, unsigned width,
                        std::uint64_t* mask) {
  switch (width) {
    case 1:
      return scan512<1>(base, next, words, mask);
    case 2:
      return scan512<2>(base, next, words, mask);
    case 4:
      return scan512<4>(base, next, words, mask);
    default:
      return scan512<8>(base, next, words, mask);
  }
}

std::size_t scan_avx2(const std::byte* base, const std::byte* next, std::size_t words, unsigned width,
                      std::uint64_t* mask) {
  switch (width) {
    case 1:
      return scan256<1>(base, next, words, mask);
    case 2:
      return scan256<2>(base, next, words, mask);
    case 4:
      return scan256<4>(base, next, words, mask);
    default:
      return scan256<8>(base, next, words, mask);
  }
}

}  // namespace deltarelay::codec::kernels
#endif
