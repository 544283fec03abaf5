// The portable passes, element by element, and the choice of kernels.
#include "codec/kernels/class_scan.hpp"

#include <bit>
#include <cstring>

#include "codec/bytes.hpp"
#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec::kernels {
namespace {

template <class Element>
std::uint8_t key_at(const std::byte* base, std::size_t i) noexcept {
  const auto old = load_le<Element>(base + i * sizeof(Element));
  return static_cast<std::uint8_t>(static_cast<Element>(old << 1) >> (8 * sizeof(Element) - 8));
}

// Up to 64 elements.
template <class Element>
void split_word(const ClassMap& map, const std::byte* base, const std::byte* next, std::size_t count,
                std::uint64_t changed, ClassSplit& out) noexcept {
  std::array<std::uint8_t, classes_max> seen{};
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t key = key_at<Element>(base, i);
    const std::uint8_t c = map.class_of[key];
    if ((changed >> i & 1) != 0) {
      *out.ranks[c]++ = out.members[c] + seen[c];
      *out.keys++ = key;
      const std::size_t at = i * sizeof(Element);
      store_le(out.steps, static_cast<Element>(load_le<Element>(next + at) - load_le<Element>(base + at)));
      out.steps += sizeof(Element);
    }
    ++seen[c];
  }
  for (unsigned c = 0; c < classes_max; ++c) out.members[c] += seen[c];
}

template <class Element>
std::uint64_t find_word(const ClassMap& map, const std::byte* base, std::size_t count, ClassMarks& marks,
                        std::uint8_t*& keys_out) noexcept {
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t key = key_at<Element>(base, i);
    const std::uint8_t c = map.class_of[key];
    const std::uint32_t rank = marks.members[c]++;
    const auto eight = std::to_integer<unsigned>(marks.bits[c * marks.stride_bytes + (rank >> 3)]);
    if ((eight >> (rank & 7) & 1) != 0) {
      changed |= std::uint64_t{1} << i;
      *keys_out++ = key;
    }
  }
  return changed;
}

template <class Element>
void split_elements(const ClassMap& map, const std::byte* base, const std::byte* next, std::size_t elements,
                    const std::uint64_t* changed, ClassSplit& out) noexcept {
  for (std::size_t first = 0; first < elements; first += 64) {
    const std::size_t count = elements - first < 64 ? elements - first : 64;
    const std::size_t at = first * sizeof(Element);
    split_word<Element>(map, base + at, next + at, count, changed[first / 64], out);
  }
}

template <class Element>
std::size_t find_elements(const ClassMap& map, const std::byte* base, std::size_t elements, ClassMarks& marks,
                          std::uint64_t* changed, std::uint8_t* keys_out) noexcept {
  const std::uint8_t* const begin = keys_out;
  for (std::size_t first = 0; first < elements; first += 64) {
    const std::size_t count = elements - first < 64 ? elements - first : 64;
    changed[first / 64] = find_word<Element>(map, base + first * sizeof(Element), count, marks, keys_out);
  }
  return static_cast<std::size_t>(keys_out - begin);
}

template <class Element>
std::size_t apply_elements(const std::byte* base, std::size_t elements, const std::uint64_t* changed,
                           const std::byte* steps, std::byte* out) noexcept {
  std::memcpy(out, base, elements * sizeof(Element));
  const std::byte* const begin = steps;
  for (std::size_t first = 0; first < elements; first += 64) {
    for (std::uint64_t bits = changed[first / 64]; bits != 0; bits &= bits - 1) {
      const std::size_t at = (first + static_cast<std::size_t>(std::countr_zero(bits))) * sizeof(Element);
      store_le(out + at, static_cast<Element>(load_le<Element>(base + at) + load_le<Element>(steps)));
      steps += sizeof(Element);
    }
  }
  return static_cast<std::size_t>(steps - begin) / sizeof(Element);
}

void split_portable(const ClassMap& map, const std::byte* base, const std::byte* next, unsigned width,
                    std::size_t elements, const std::uint64_t* changed, ClassSplit& out) noexcept {
  switch (width) {
    case 1:
      return split_elements<std::uint8_t>(map, base, next, elements, changed, out);
    case 2:
      return split_elements<std::uint16_t>(map, base, next, elements, changed, out);
    case 4:
      return split_elements<std::uint32_t>(map, base, next, elements, changed, out);
    default:
      return split_elements<std::uint64_t>(map, base, next, elements, changed, out);
  }
}

std::size_t find_portable(const ClassMap& map, const std::byte* base, unsigned width, std::size_t elements,
                          ClassMarks& marks, std::uint64_t* changed, std::uint8_t* keys_out) noexcept {
  switch (width) {
    case 1:
      return find_elements<std::uint8_t>(map, base, elements, marks, changed, keys_out);
    case 2:
      return find_elements<std::uint16_t>(map, base, elements, marks, changed, keys_out);
    case 4:
      return find_elements<std::uint32_t>(map, base, elements, marks, changed, keys_out);
    default:
      return find_elements<std::uint64_t>(map, base, elements, marks, changed, keys_out);
  }
}

std::size_t apply_portable(const std::byte* base, unsigned width, std::size_t elements, const std::uint64_t* changed,
                           const std::byte* steps, std::byte* out) noexcept {
  switch (width) {
    case 1:
      return apply_elements<std::uint8_t>(base, elements, changed, steps, out);
    case 2:
      return apply_elements<std::uint16_t>(base, elements, changed, steps, out);
    case 4:
      return apply_elements<std::uint32_t>(base, elements, changed, steps, out);
    default:
      return apply_elements<std::uint64_t>(base, elements, changed, steps, out);
  }
}

const ClassKernels& kernels_here() noexcept {
#if defined(__x86_64__)
  static const ClassKernels& here = class_kernels_avx512_run_here() ? class_kernels_avx512
                                    : cpu_level() >= CpuLevel::avx2 ? class_kernels_avx2
                                                                    : class_kernels_portable;
  return here;
#else
  return class_kernels_portable;
#endif
}

std::size_t whole(unsigned width, std::size_t elements) noexcept {
  return width <= class_width_max ? elements / 64 * 64 : 0;
}

}  // namespace

const ClassKernels class_kernels_portable{split_portable, find_portable, apply_portable};

void class_split(const ClassMap& map, const std::byte* base, const std::byte* next, unsigned width,
                 std::size_t elements, const std::uint64_t* changed, ClassSplit& out) noexcept {
  const std::size_t head = whole(width, elements);
  kernels_here().split(map, base, next, width, head, changed, out);
  split_portable(map, base + head * width, next + head * width, width, elements - head, changed + head / 64, out);
}

std::size_t class_find(const ClassMap& map, const std::byte* base, unsigned width, std::size_t elements,
                       ClassMarks& marks, std::uint64_t* changed, std::uint8_t* keys_out) noexcept {
  const std::size_t head = whole(width, elements);
  const std::size_t found = kernels_here().find(map, base, width, head, marks, changed, keys_out);
  return found +
         find_portable(map, base + head * width, width, elements - head, marks, changed + head / 64, keys_out + found);
}

std::size_t apply_steps(const std::byte* base, unsigned width, std::size_t elements, const std::uint64_t* changed,
                        const std::byte* steps, std::byte* out) noexcept {
  const std::size_t head = whole(width, elements);
  const std::size_t used = kernels_here().apply(base, width, head, changed, steps, out);
  return used + apply_portable(base + head * width, width, elements - head, changed + head / 64, steps + used * width,
                               out + head * width);
}

}  // namespace deltarelay::codec::kernels
