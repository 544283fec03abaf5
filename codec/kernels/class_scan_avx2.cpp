// The class passes with AVX2 and BMI2: masks of classes by comparing keys, positions by pdep.
#include "codec/kernels/class_scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

namespace deltarelay::codec::kernels {
namespace {

#define DELTARELAY_CLASS_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define DELTARELAY_CLASS_AVX2_INLINE DELTARELAY_CLASS_AVX2 __attribute__((always_inline)) inline

// The keys of 64 elements, in order.
struct Keys {
  __m256i low, high;
};

DELTARELAY_CLASS_AVX2_INLINE __m256i load(const std::byte* p) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
// 32 keys of 16-bit elements; pack works within halves, so the quarters are put in order after it.
DELTARELAY_CLASS_AVX2_INLINE __m256i keys_of_2(const std::byte* p) noexcept {
  const __m256i a = _mm256_srli_epi16(_mm256_slli_epi16(load(p), 1), 8);
  const __m256i b = _mm256_srli_epi16(_mm256_slli_epi16(load(p + 32), 1), 8);
  return _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
}
DELTARELAY_CLASS_AVX2_INLINE __m256i keys_of_4(const std::byte* p) noexcept {
  const __m256i a = _mm256_srli_epi32(_mm256_slli_epi32(load(p), 1), 24);
  const __m256i b = _mm256_srli_epi32(_mm256_slli_epi32(load(p + 32), 1), 24);
  const __m256i c = _mm256_srli_epi32(_mm256_slli_epi32(load(p + 64), 1), 24);
  const __m256i d = _mm256_srli_epi32(_mm256_slli_epi32(load(p + 96), 1), 24);
  const __m256i packed = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
  return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
template <unsigned width>
DELTARELAY_CLASS_AVX2_INLINE Keys keys_of(const std::byte* p) noexcept {
  if constexpr (width == 1) return {_mm256_add_epi8(load(p), load(p)), _mm256_add_epi8(load(p + 32), load(p + 32))};
  if constexpr (width == 2) return {keys_of_2(p), keys_of_2(p + 64)};
  if constexpr (width == 4) return {keys_of_4(p), keys_of_4(p + 128)};
}

DELTARELAY_CLASS_AVX2_INLINE std::uint64_t at_least(const Keys& keys, std::uint8_t first) noexcept {
  const __m256i bound = _mm256_set1_epi8(static_cast<char>(first));
  const __m256i low = _mm256_cmpeq_epi8(_mm256_max_epu8(keys.low, bound), keys.low);
  const __m256i high = _mm256_cmpeq_epi8(_mm256_max_epu8(keys.high, bound), keys.high);
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(high))) << 32;
}

// Element i is bit i of its class's word.
DELTARELAY_CLASS_AVX2_INLINE void masks_of(const ClassMap& map, const Keys& keys, std::uint64_t* masks) noexcept {
  std::uint64_t above = ~std::uint64_t{0};
  for (unsigned c = 0; c + 1 < map.count; ++c) {
    const std::uint64_t next = at_least(keys, map.first_key[c + 1]);
    masks[c] = above & ~next;
    above = next;
  }
  masks[map.count - 1] = above;
}

// The 64 marks from `rank` on.
DELTARELAY_CLASS_AVX2_INLINE std::uint64_t window(const std::byte* bits, std::uint32_t rank) noexcept {
  std::uint64_t low;
  std::memcpy(&low, bits + (rank >> 3), 8);
  const auto high = static_cast<std::uint64_t>(bits[(rank >> 3) + 8]);
  return low >> (rank & 7) | high << 1 << (63 - (rank & 7));
}

template <unsigned width>
DELTARELAY_CLASS_AVX2_INLINE std::uint8_t key_at(const std::byte* word, std::size_t i) noexcept {
  const auto top = std::to_integer<unsigned>(word[i * width + width - 1]);
  const unsigned below = width == 1 ? 0 : std::to_integer<unsigned>(word[i * width + width - (width == 1 ? 1 : 2)]);
  return static_cast<std::uint8_t>(top << 1 | below >> 7);
}

template <unsigned width>
DELTARELAY_CLASS_AVX2_INLINE void put_step(const std::byte* base, const std::byte* next, std::byte* step) noexcept {
  if constexpr (width == 1) *step = static_cast<std::byte>(std::to_integer<int>(*next) - std::to_integer<int>(*base));
  if constexpr (width == 2) {
    std::uint16_t a, b;
    std::memcpy(&a, base, 2);
    std::memcpy(&b, next, 2);
    a = static_cast<std::uint16_t>(b - a);
    std::memcpy(step, &a, 2);
  }
  if constexpr (width == 4) {
    std::uint32_t a, b;
    std::memcpy(&a, base, 4);
    std::memcpy(&b, next, 4);
    a = b - a;
    std::memcpy(step, &a, 4);
  }
}
template <unsigned width>
DELTARELAY_CLASS_AVX2_INLINE void add_step(const std::byte* step, std::byte* out) noexcept {
  if constexpr (width == 1) *out = static_cast<std::byte>(std::to_integer<int>(*out) + std::to_integer<int>(*step));
  if constexpr (width == 2) {
    std::uint16_t a, b;
    std::memcpy(&a, out, 2);
    std::memcpy(&b, step, 2);
    a = static_cast<std::uint16_t>(a + b);
    std::memcpy(out, &a, 2);
  }
  if constexpr (width == 4) {
    std::uint32_t a, b;
    std::memcpy(&a, out, 4);
    std::memcpy(&b, step, 4);
    a += b;
    std::memcpy(out, &a, 4);
  }
}

template <unsigned width>
DELTARELAY_CLASS_AVX2 void split(const ClassMap& map, const std::byte* base, const std::byte* next,
                                 std::size_t elements, const std::uint64_t* changed, ClassSplit& out) noexcept {
  std::uint64_t masks[classes_max] = {};
  for (std::size_t word = 0; word < elements / 64; ++word, base += 64 * width, next += 64 * width) {
    masks_of(map, keys_of<width>(base), masks);
    for (std::uint64_t bits = changed[word]; bits != 0; bits = _blsr_u64(bits)) {
      const auto i = static_cast<unsigned>(_tzcnt_u64(bits));
      const std::uint8_t key = key_at<width>(base, i);
      const std::uint8_t c = map.class_of[key];
      const auto before = static_cast<std::uint32_t>(_mm_popcnt_u64(_bzhi_u64(masks[c], i)));
      *out.ranks[c]++ = out.members[c] + before;
      *out.keys++ = key;
      put_step<width>(base + i * width, next + i * width, out.steps);
      out.steps += width;
    }
    for (unsigned c = 0; c < map.count; ++c) {
      out.members[c] += static_cast<std::uint32_t>(_mm_popcnt_u64(masks[c]));
    }
  }
}

template <unsigned width>
DELTARELAY_CLASS_AVX2 std::size_t find(const ClassMap& map, const std::byte* base, std::size_t elements,
                                       ClassMarks& marks, std::uint64_t* changed, std::uint8_t* keys_out) noexcept {
  const std::uint8_t* const begin = keys_out;
  std::uint64_t masks[classes_max] = {};
  for (std::size_t word = 0; word < elements / 64; ++word, base += 64 * width) {
    masks_of(map, keys_of<width>(base), masks);
    std::uint64_t found = 0;
    for (unsigned c = 0; c < map.count; ++c) {
      found |= _pdep_u64(window(marks.bits + c * marks.stride_bytes, marks.members[c]), masks[c]);
      marks.members[c] += static_cast<std::uint32_t>(_mm_popcnt_u64(masks[c]));
    }
    changed[word] = found;
    for (std::uint64_t bits = found; bits != 0; bits = _blsr_u64(bits)) {
      *keys_out++ = key_at<width>(base, static_cast<std::size_t>(_tzcnt_u64(bits)));
    }
  }
  return static_cast<std::size_t>(keys_out - begin);
}

template <unsigned width>
DELTARELAY_CLASS_AVX2 std::size_t apply(const std::byte* base, std::size_t elements, const std::uint64_t* changed,
                                        const std::byte* steps, std::byte* out) noexcept {
  const std::byte* const begin = steps;
  for (std::size_t word = 0; word < elements / 64; ++word, base += 64 * width, out += 64 * width) {
    std::memcpy(out, base, 64 * width);
    for (std::uint64_t bits = changed[word]; bits != 0; bits = _blsr_u64(bits), steps += width) {
      add_step<width>(steps, out + _tzcnt_u64(bits) * width);
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

const ClassKernels class_kernels_avx2{split_any, find_any, apply_any};

}  // namespace deltarelay::codec::kernels
#endif
