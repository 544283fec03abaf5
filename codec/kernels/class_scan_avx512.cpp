// The class passes with AVX-512 as of Ice Lake and Zen 4 (VBMI, VBMI2, GFNI, VPOPCNTDQ).
//
// The class of 64 elements is looked up as a one-hot byte each; one GF(2) affine instruction and one byte shuffle
// transpose these into eight 64-bit masks, one per class. Counts of all classes go up in one vector.
#include "codec/kernels/class_scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>
#include <type_traits>

#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec::kernels {
namespace {

#define DELTARELAY_CLASS_AVX512                                                                              \
  __attribute__((                                                                                            \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,avx2,bmi,bmi2," \
             "popcnt,lzcnt")))
#define DELTARELAY_CLASS_AVX512_INLINE DELTARELAY_CLASS_AVX512 __attribute__((always_inline)) inline

DELTARELAY_CLASS_AVX512_INLINE __m512i load(const void* p) noexcept {
  return _mm512_loadu_si512(p);
}

// A zero that the compiler cannot see through. Expand and compress into a register wait for what the register held
// before, also in their zeroing form (measured on Zen 5: 6 cycles each instead of 1), unless that was just zeroed.
DELTARELAY_CLASS_AVX512_INLINE __m512i fresh_zero() noexcept {
  __m512i zero = _mm512_setzero_si512();
  asm("" : "+v"(zero));
  return zero;
}

// The passes come back to memory after each tile; far enough ahead, the next lines are there when they do. Asked for
// from the pass that is slowest per word: a burst of requests from a fast one would wait for the first of them to come
// back.
constexpr std::size_t prefetch_bytes = 8192;
DELTARELAY_CLASS_AVX512_INLINE void prefetch(const std::byte* p) noexcept {
  _mm_prefetch(reinterpret_cast<const char*>(p) + prefetch_bytes, _MM_HINT_T0);
}

// Byte i is fill(i).
template <class Fill>
constexpr std::array<std::uint8_t, 64> bytes_of(const Fill& fill) noexcept {
  std::array<std::uint8_t, 64> out{};
  for (unsigned i = 0; i < 64; ++i) out[i] = static_cast<std::uint8_t>(fill(i));
  return out;
}
alignas(64) constexpr auto odd_byte_indices = bytes_of([](unsigned i) { return 2 * i + 1; });
alignas(64) constexpr auto reversed_indices = bytes_of([](unsigned i) { return i ^ 7; });
alignas(64) constexpr auto transposed_indices = bytes_of([](unsigned i) { return (i & 7) * 8 + (i >> 3); });

// A table of 256 bytes in four vectors, for 64 look-ups at once.
struct Lookup {
  __m512i part[4];
  DELTARELAY_CLASS_AVX512_INLINE __m512i at(__m512i keys) const noexcept {
    const __m512i low = _mm512_permutex2var_epi8(part[0], keys, part[1]);
    const __m512i high = _mm512_permutex2var_epi8(part[2], keys, part[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(keys), low, high);
  }
};

struct Tables {
  Lookup one_hot;
  __m512i odd_bytes, reversed, transposed, identity;

  DELTARELAY_CLASS_AVX512_INLINE explicit Tables(const ClassMap& map) noexcept {
    for (unsigned p = 0; p < 4; ++p) one_hot.part[p] = load(&map.class_bit[64 * p]);
    odd_bytes = load(odd_byte_indices.data());
    reversed = load(reversed_indices.data());
    transposed = load(transposed_indices.data());
    identity = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201ull));
  }
  // Element i is bit i of its class's 64-bit lane. The instruction takes a matrix's rows from the last byte to the
  // first, hence the reversal within each eight.
  DELTARELAY_CLASS_AVX512_INLINE __m512i masks(__m512i keys) const noexcept {
    const __m512i rows = _mm512_permutexvar_epi8(reversed, one_hot.at(keys));
    return _mm512_permutexvar_epi8(transposed, _mm512_gf2p8affine_epi64_epi8(identity, rows, 0));
  }
};

template <unsigned width>
DELTARELAY_CLASS_AVX512_INLINE __m512i keys_of(const Tables& tables, const std::byte* p) noexcept {
  if constexpr (width == 1) return _mm512_add_epi8(load(p), load(p));
  if constexpr (width == 2) {
    const __m512i a = _mm512_slli_epi16(load(p), 1), b = _mm512_slli_epi16(load(p + 64), 1);
    return _mm512_permutex2var_epi8(a, tables.odd_bytes, b);
  }
  if constexpr (width == 4) {
    const auto quarter = [&](unsigned q) DELTARELAY_CLASS_AVX512 {
      return _mm512_cvtepi32_epi8(_mm512_srli_epi32(_mm512_slli_epi32(load(p + 64 * q), 1), 24));
    };
    __m512i out = _mm512_castsi128_si512(quarter(0));
    out = _mm512_inserti32x4(out, quarter(1), 1);
    out = _mm512_inserti32x4(out, quarter(2), 2);
    return _mm512_inserti32x4(out, quarter(3), 3);
  }
}

// The steps put where `changed` (its low bits) has ones, zeros elsewhere.
template <unsigned width>
DELTARELAY_CLASS_AVX512_INLINE __m512i expand(std::uint64_t changed, __m512i steps) noexcept {
  if constexpr (width == 1) return _mm512_mask_expand_epi8(fresh_zero(), changed, steps);
  if constexpr (width == 2) return _mm512_mask_expand_epi16(fresh_zero(), static_cast<__mmask32>(changed), steps);
  if constexpr (width == 4) return _mm512_mask_expand_epi32(fresh_zero(), static_cast<__mmask16>(changed), steps);
}
template <unsigned width>
DELTARELAY_CLASS_AVX512_INLINE __m512i add(__m512i a, __m512i b) noexcept {
  if constexpr (width == 1) return _mm512_add_epi8(a, b);
  if constexpr (width == 2) return _mm512_add_epi16(a, b);
  if constexpr (width == 4) return _mm512_add_epi32(a, b);
}
template <unsigned width>
constexpr std::uint64_t lanes_mask = width == 1 ? ~0ull : (1ull << (64 / width % 64)) - 1;

DELTARELAY_CLASS_AVX512_INLINE std::size_t count_of(std::uint64_t bits) noexcept {
  return static_cast<std::size_t>(_mm_popcnt_u64(bits));
}

// Some words at a time: first masks, counts and positions of all, by vectors, then one straight loop over the changes.
// A loop over the changes of each word would be mispredicted at the end of most words.
constexpr std::size_t tile_words = 32;
struct Tile {
  alignas(64) std::uint64_t masks[tile_words][classes_max];
  alignas(64) std::uint32_t members[tile_words][classes_max];
  std::uint16_t positions[tile_words * 64 + 64];
};

template <unsigned width>
using Element =
    std::conditional_t<width == 1, std::uint8_t, std::conditional_t<width == 2, std::uint16_t, std::uint32_t>>;

// Rank, key and step of each change of a tile that begins at `base` and `next`.
template <unsigned width>
DELTARELAY_CLASS_AVX512_INLINE void put_changes(const Tile& tile, std::size_t count, const ClassMap& map,
                                                const std::byte* base, const std::byte* next,
                                                ClassSplit& out) noexcept {
  std::array<std::uint32_t*, classes_max> ranks = out.ranks;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t position = tile.positions[i], word = position / 64, bit = position % 64;
    Element<width> old, now;
    std::memcpy(&old, base + position * width, width);
    std::memcpy(&now, next + position * width, width);
    const auto key = static_cast<std::uint8_t>(static_cast<Element<width>>(old << 1) >> (8 * width - 8));
    const auto step = static_cast<Element<width>>(now - old);
    out.keys[i] = key;
    std::memcpy(out.steps + i * width, &step, width);
    const std::uint8_t c = map.class_of[key];
    const std::uint64_t below = _bzhi_u64(tile.masks[word][c], static_cast<unsigned>(bit));
    *ranks[c]++ = tile.members[word][c] + static_cast<std::uint32_t>(_mm_popcnt_u64(below));
  }
  out.ranks = ranks;
  out.keys += count;
  out.steps += count * width;
}

DELTARELAY_CLASS_AVX512_INLINE std::uint16_t* put_positions(std::uint64_t changed, __m512i first,
                                                            std::uint16_t* positions) noexcept {
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(32));
  _mm512_storeu_si512(positions, _mm512_mask_compress_epi16(fresh_zero(), static_cast<__mmask32>(changed), first));
  positions += count_of(changed & 0xffffffff);
  _mm512_storeu_si512(positions,
                      _mm512_mask_compress_epi16(fresh_zero(), static_cast<__mmask32>(changed >> 32), second));
  return positions + count_of(changed >> 32);
}

template <unsigned width>
DELTARELAY_CLASS_AVX512 void split(const ClassMap& map, const std::byte* base, const std::byte* next,
                                   std::size_t elements, const std::uint64_t* changed, ClassSplit& out) noexcept {
  const Tables tables(map);
  Tile tile;
  alignas(64) std::uint16_t iota[32];
  for (unsigned i = 0; i < 32; ++i) iota[i] = static_cast<std::uint16_t>(i);
  __m512i members = _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(out.members.data())));
  for (std::size_t words = elements / 64; words > 0;) {
    const std::size_t some = words < tile_words ? words : tile_words;
    __m512i first = _mm512_load_si512(iota);
    std::uint16_t* positions = tile.positions;
    const std::byte *const tile_base = base, *const tile_next = next;
    for (std::size_t word = 0; word < some; ++word, base += 64 * width, next += 64 * width) {
      for (unsigned line = 0; line < width; ++line) {
        prefetch(base + 64 * line);
        prefetch(next + 64 * line);
      }
      const __m512i masks = tables.masks(keys_of<width>(tables, base));
      _mm512_store_si512(tile.masks[word], masks);
      _mm256_store_si256(reinterpret_cast<__m256i*>(tile.members[word]), _mm512_cvtepi64_epi32(members));
      members = _mm512_add_epi64(members, _mm512_popcnt_epi64(masks));
      positions = put_positions(changed[word], first, positions);
      first = _mm512_add_epi16(first, _mm512_set1_epi16(64));
    }
    put_changes<width>(tile, static_cast<std::size_t>(positions - tile.positions), map, tile_base, tile_next, out);
    words -= some;
    changed += some;
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.members.data()), _mm512_cvtepi64_epi32(members));
}

// Also by tiles: from a word's old values to its changes it is some eighty cycles, of which little overlaps with the
// next word's unless the passes are short loops of their own.
struct FindTile {
  alignas(64) std::uint64_t masks[tile_words][classes_max];
  alignas(64) std::uint64_t offsets[tile_words][classes_max];  // bytes from ClassMarks::bits to the class's next mark
  alignas(64) std::uint64_t shifts[tile_words][classes_max];   // and bits
  alignas(64) std::uint8_t keys[tile_words][64];
};

// Marks from the next rank of each class on, put where the class's elements are. One load of eight bytes has at least
// 57 marks from any bit on; a class with more elements than that in one word needs the ninth byte.
template <unsigned width, bool wide>
DELTARELAY_CLASS_AVX512_INLINE void place_marks(const std::byte* bits, const FindTile& tile, const std::byte* base,
                                                std::size_t words, std::uint64_t* changed) noexcept {
  for (std::size_t word = 0; word < words; ++word, base += 64 * width) {
    for (unsigned line = 0; line < width; ++line) prefetch(base + 64 * line);
    std::uint64_t found = 0;
    for (unsigned c = 0; c < classes_max; ++c) {
      const std::byte* const at = bits + tile.offsets[word][c];
      const std::uint64_t shift = tile.shifts[word][c];
      std::uint64_t window;
      std::memcpy(&window, at, 8);
      window >>= shift;
      if constexpr (wide) window |= static_cast<std::uint64_t>(at[8]) << 1 << (63 - shift);
      found |= _pdep_u64(window, tile.masks[word][c]);
    }
    changed[word] = found;
  }
}

template <unsigned width>
DELTARELAY_CLASS_AVX512 std::size_t find(const ClassMap& map, const std::byte* base, std::size_t elements,
                                         ClassMarks& marks, std::uint64_t* changed, std::uint8_t* keys_out) noexcept {
  const Tables tables(map);
  const std::uint8_t* const begin = keys_out;
  FindTile tile;
  const __m512i class_offsets = _mm512_mullo_epi64(_mm512_set1_epi64(static_cast<long long>(marks.stride_bytes)),
                                                   _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
  __m512i members = _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(marks.members.data())));
  for (std::size_t words = elements / 64; words > 0;) {
    const std::size_t some = words < tile_words ? words : tile_words;
    __mmask8 crowded = 0;
    const std::byte* const tile_base = base;
    for (std::size_t word = 0; word < some; ++word, base += 64 * width) {
      const __m512i keys = keys_of<width>(tables, base), masks = tables.masks(keys);
      const __m512i counts = _mm512_popcnt_epi64(masks);
      _mm512_store_si512(tile.keys[word], keys);
      _mm512_store_si512(tile.masks[word], masks);
      _mm512_store_si512(tile.offsets[word], _mm512_add_epi64(class_offsets, _mm512_srli_epi64(members, 3)));
      _mm512_store_si512(tile.shifts[word], _mm512_and_si512(members, _mm512_set1_epi64(7)));
      members = _mm512_add_epi64(members, counts);
      crowded |= _mm512_cmpgt_epu64_mask(counts, _mm512_set1_epi64(57));
    }
    if (crowded != 0) {
      place_marks<width, true>(marks.bits, tile, tile_base, some, changed);
    } else {
      place_marks<width, false>(marks.bits, tile, tile_base, some, changed);
    }
    for (std::size_t word = 0; word < some; ++word) {
      _mm512_storeu_si512(keys_out, _mm512_mask_compress_epi8(fresh_zero(), changed[word], load(tile.keys[word])));
      keys_out += count_of(changed[word]);
    }
    words -= some;
    changed += some;
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(marks.members.data()), _mm512_cvtepi64_epi32(members));
  return static_cast<std::size_t>(keys_out - begin);
}

template <unsigned width>
DELTARELAY_CLASS_AVX512 std::size_t apply(const std::byte* base, std::size_t elements, const std::uint64_t* changed,
                                          const std::byte* steps, std::byte* out) noexcept {
  const std::byte* const begin = steps;
  for (std::size_t word = 0; word < elements / 64; ++word) {
    for (unsigned vector = 0; vector < width; ++vector, base += 64, out += 64) {
      const std::uint64_t bits = changed[word] >> (64 / width * vector % 64) & lanes_mask<width>;
      _mm512_storeu_si512(out, add<width>(load(base), expand<width>(bits, load(steps))));
      steps += count_of(bits) * width;
    }
  }
  return static_cast<std::size_t>(steps - begin) / width;
}

void split_any(const ClassMap& map, const std::byte* base, const std::byte* next, unsigned width, std::size_t elements,
               const std::uint64_t* changed, ClassSplit& out) noexcept {
  if (width == 1) return split<1>(map, base, next, elements, changed, out);
  if (width == 2) return split<2>(map, base, next, elements, changed, out);
  split<4>(map, base, next, elements, changed, out);
}

std::size_t find_any(const ClassMap& map, const std::byte* base, unsigned width, std::size_t elements,
                     ClassMarks& marks, std::uint64_t* changed, std::uint8_t* keys_out) noexcept {
  if (width == 1) return find<1>(map, base, elements, marks, changed, keys_out);
  if (width == 2) return find<2>(map, base, elements, marks, changed, keys_out);
  return find<4>(map, base, elements, marks, changed, keys_out);
}

std::size_t apply_any(const std::byte* base, unsigned width, std::size_t elements, const std::uint64_t* changed,
                      const std::byte* steps, std::byte* out) noexcept {
  if (width == 1) return apply<1>(base, elements, changed, steps, out);
  if (width == 2) return apply<2>(base, elements, changed, steps, out);
  return apply<4>(base, elements, changed, steps, out);
}

}  // namespace

const ClassKernels class_kernels_avx512{split_any, find_any, apply_any};

bool class_kernels_avx512_run_here() noexcept {
  if (cpu_level() != CpuLevel::avx512) return false;
  return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
         __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("gfni");
}

}  // namespace deltarelay::codec::kernels
#endif
