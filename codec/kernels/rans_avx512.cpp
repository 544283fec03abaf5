// rANS with 16 or 32 lanes in one or two vectors. Same words, same states as the portable coder.
#include "codec/kernels/rans.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <bit>

namespace deltarelay::codec::kernels {
namespace {

#define DELTARELAY_RANS __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt,bmi,bmi2")))
#define DELTARELAY_RANS_INLINE DELTARELAY_RANS __attribute__((always_inline)) inline

constexpr unsigned half_lanes = 16;

// A zero that the compiler cannot see through: as in class_scan_avx512.cpp, what is expanded or compressed into waits
// for its old content otherwise.
DELTARELAY_RANS_INLINE __m512i fresh_zero() noexcept {
  __m512i zero = _mm512_setzero_si512();
  asm("" : "+v"(zero));
  return zero;
}

// One symbol in each lane of `valid`. REQUIRES 16 readable words at `words`.
DELTARELAY_RANS_INLINE __m128i decode_half(__m512i& state, __m512i table, __mmask16 valid, const std::uint32_t* tables,
                                           const std::byte*& words) noexcept {
  const __m512i low12 = _mm512_set1_epi32(0xfff);
  const __m512i at = _mm512_add_epi32(table, _mm512_and_si512(state, _mm512_set1_epi32(rans_one - 1)));
  const __m512i slot = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), valid, at, tables, 4);
  const __m512i frequency =
      _mm512_add_epi32(_mm512_and_si512(_mm512_srli_epi32(slot, 12), low12), _mm512_set1_epi32(1));
  const __m512i next = _mm512_add_epi32(_mm512_mullo_epi32(frequency, _mm512_srli_epi32(state, rans_bits)),
                                        _mm512_and_si512(slot, low12));
  const __mmask16 low = _mm512_mask_cmplt_epu32_mask(valid, next, _mm512_set1_epi32(static_cast<int>(rans_state_min)));
  const __m512i read = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
  words += 2 * std::popcount(static_cast<unsigned>(low));
  const __m512i filled =
      _mm512_mask_or_epi32(next, low, _mm512_slli_epi32(next, 16), _mm512_mask_expand_epi32(fresh_zero(), low, read));
  state = _mm512_mask_mov_epi32(state, valid, filled);
  return _mm512_cvtepi32_epi8(_mm512_srli_epi32(slot, 24));
}

DELTARELAY_RANS_INLINE __m512i table_offsets(const std::uint8_t* contexts, __mmask16 valid) noexcept {
  const __m128i context = _mm_maskz_loadu_epi8(valid, contexts);
  return _mm512_slli_epi32(_mm512_cvtepu8_epi32(context), rans_bits);
}

// Symbols [from, to) of a run, all in one round of the lanes.
template <unsigned halves>
DELTARELAY_RANS_INLINE void decode_round(__m512i (&state)[halves], const std::uint32_t* tables,
                                         const std::uint8_t* contexts, std::uint32_t valid, const std::byte*& words,
                                         std::uint8_t* out) noexcept {
  for (unsigned half = 0; half < halves; ++half) {
    const auto lanes = static_cast<__mmask16>(valid >> (half_lanes * half));
    const __m512i table =
        contexts == nullptr ? _mm512_setzero_si512() : table_offsets(contexts + half_lanes * half, lanes);
    const __m128i tokens = decode_half(state[half], table, lanes, tables, words);
    _mm_mask_storeu_epi8(out + half_lanes * half, lanes, tokens);
  }
}

template <unsigned halves>
DELTARELAY_RANS void decode_run(RansDecoding& from, const std::uint32_t* tables, const std::uint8_t* contexts,
                                std::size_t first, std::size_t count, std::uint8_t* out) noexcept {
  constexpr std::size_t lanes = half_lanes * halves;
  constexpr std::uint32_t all = halves == 2 ? ~0u : 0xffffu;
  __m512i state[halves];
  for (unsigned half = 0; half < halves; ++half) state[half] = _mm512_loadu_si512(&from.states[half_lanes * half]);
  const std::byte* words = from.words;
  std::size_t done = 0;
  // A round reads whole vectors of words, so the last ones are left to the portable coder.
  while (done < count && static_cast<std::size_t>(from.end - words) >= 4 * lanes) {
    const std::size_t lane = (first + done) % lanes;
    const std::size_t some = count - done < lanes - lane ? count - done : lanes - lane;
    const std::uint32_t valid = some == lanes ? all : ((1u << some) - 1) << lane;
    const std::uint8_t* const context = contexts == nullptr ? nullptr : contexts + done - lane;
    decode_round<halves>(state, tables, context, valid, words, out + done - lane);
    done += some;
  }
  for (unsigned half = 0; half < halves; ++half) _mm512_storeu_si512(&from.states[half_lanes * half], state[half]);
  from.words = words;
  if (done < count) {
    rans_decode_portable(from, tables, contexts == nullptr ? nullptr : contexts + done, first + done, count - done,
                         out + done);
  }
}

// The quotient in floats is off by one at the most (24 bits of it against a quotient below 2^21); the remainder tells
// which way. Divided and not multiplied by a reciprocal from a table: a second gather costs more.
DELTARELAY_RANS_INLINE void encode_half(__m512i& state, const std::uint16_t* symbols, __mmask16 valid,
                                        const std::uint32_t* ranges, std::byte*& words) noexcept {
  const __m512i symbol = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(valid, symbols));
  const __m512i range = _mm512_mask_i32gather_epi32(_mm512_set1_epi32(1), valid, symbol, ranges, 4);
  const __m512i frequency = _mm512_and_si512(range, _mm512_set1_epi32(0xffff)), before = _mm512_srli_epi32(range, 16);
  // x >= f << 21, as x >> 21 >= f: f may be 2^11.
  const __mmask16 full = _mm512_mask_cmpge_epu32_mask(valid, _mm512_srli_epi32(state, 32 - rans_bits), frequency);
  const auto count = static_cast<unsigned>(std::popcount(static_cast<unsigned>(full)));
  words -= 2 * count;
  _mm256_mask_storeu_epi16(words, static_cast<__mmask16>((1u << count) - 1),
                           _mm512_cvtepi32_epi16(_mm512_mask_compress_epi32(fresh_zero(), full, state)));
  const __m512i x = _mm512_mask_srli_epi32(state, full, state, 16);
  __m512i quotient = _mm512_cvttps_epu32(_mm512_div_ps(_mm512_cvtepu32_ps(x), _mm512_cvtepi32_ps(frequency)));
  __m512i rest = _mm512_sub_epi32(x, _mm512_mullo_epi32(quotient, frequency));
  const __mmask16 high = _mm512_movepi32_mask(rest);
  quotient = _mm512_mask_sub_epi32(quotient, high, quotient, _mm512_set1_epi32(1));
  rest = _mm512_mask_add_epi32(rest, high, rest, frequency);
  const __mmask16 small = _mm512_cmpge_epi32_mask(rest, frequency);
  quotient = _mm512_mask_add_epi32(quotient, small, quotient, _mm512_set1_epi32(1));
  const __m512i spread = _mm512_sub_epi32(_mm512_set1_epi32(rans_one), frequency);
  const __m512i next = _mm512_add_epi32(_mm512_add_epi32(x, before), _mm512_mullo_epi32(quotient, spread));
  state = _mm512_mask_mov_epi32(state, valid, next);
}

template <unsigned halves>
DELTARELAY_RANS void encode_run(RansEncoding& to, const std::uint32_t* ranges, const std::uint16_t* symbols,
                                std::size_t count) noexcept {
  constexpr std::size_t lanes = half_lanes * halves;
  __m512i state[halves];
  for (unsigned half = 0; half < halves; ++half) state[half] = _mm512_loadu_si512(&to.states[half_lanes * half]);
  std::byte* words = to.words;
  for (std::size_t end = count; end > 0;) {
    const std::size_t begin = (end - 1) / lanes * lanes, some = end - begin;
    const std::uint32_t valid = some == 32 ? ~0u : (1u << some) - 1;
    for (unsigned half = halves; half-- > 0;) {
      encode_half(state[half], symbols + begin + half_lanes * half,
                  static_cast<__mmask16>(valid >> (half_lanes * half)), ranges, words);
    }
    end = begin;
  }
  for (unsigned half = 0; half < halves; ++half) _mm512_storeu_si512(&to.states[half_lanes * half], state[half]);
  to.words = words;
}

}  // namespace

void rans_decode_avx512(RansDecoding& from, const std::uint32_t* tables, const std::uint8_t* contexts,
                        std::size_t first, std::size_t count, std::uint8_t* out) noexcept {
  if (from.lanes == 32) return decode_run<2>(from, tables, contexts, first, count, out);
  if (from.lanes == 16) return decode_run<1>(from, tables, contexts, first, count, out);
  rans_decode_portable(from, tables, contexts, first, count, out);
}

void rans_encode_avx512(RansEncoding& to, const std::uint32_t* ranges, const std::uint16_t* symbols,
                        std::size_t count) noexcept {
  if (to.lanes == 32) return encode_run<2>(to, ranges, symbols, count);
  if (to.lanes == 16) return encode_run<1>(to, ranges, symbols, count);
  rans_encode_portable(to, ranges, symbols, count);
}

}  // namespace deltarelay::codec::kernels
#endif
