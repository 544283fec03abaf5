// The portable scan, the tail, and the choice of kernel.
#include "codec/kernels/scan.hpp"

#include <bit>

#include "codec/bytes.hpp"
#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec::kernels {
namespace {

// One bit per element of `Lane` bytes within a word of 8: set where the lane of `x` is not zero. Adding the lane's
// maximum below its top bit carries into that bit exactly when a lower bit is set.
template <class Lane>
std::uint64_t lane_bits(std::uint64_t x) noexcept {
  constexpr unsigned lane_size = sizeof(Lane);
  if constexpr (lane_size == 8) {
    return x != 0 ? 1 : 0;
  } else {
    constexpr std::uint64_t ones = ~std::uint64_t{0} / static_cast<Lane>(~Lane{0});
    constexpr std::uint64_t top = ones << (8 * lane_size - 1);
    const std::uint64_t marked = (((x & ~top) + ~top) | x) & top;
    std::uint64_t out = 0;
    for (unsigned lane = 0; lane < 8 / lane_size; ++lane) {
      out |= ((marked >> (8 * lane_size * (lane + 1) - 1)) & 1) << lane;
    }
    return out;
  }
}

template <class Lane>
std::size_t scan_words(const std::byte* base, const std::byte* next, std::size_t words, std::uint64_t* mask) noexcept {
  constexpr unsigned lanes = 8 / sizeof(Lane);
  std::size_t changed = 0;
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t bits = 0;
    for (unsigned first = 0; first < 64; first += lanes) {
      std::uint64_t a, b;
      std::memcpy(&a, base, 8);
      std::memcpy(&b, next, 8);
      base += 8;
      next += 8;
      if (a != b) bits |= lane_bits<Lane>(little_endian(a) ^ little_endian(b)) << first;
    }
    mask[word] = bits;
    changed += static_cast<std::size_t>(std::popcount(bits));
  }
  return changed;
}

std::uint64_t scan_tail(Bytes base, Bytes next, unsigned width) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t at = 0, element = 0; at < base.size(); at += width, ++element) {
    if (std::memcmp(base.data() + at, next.data() + at, width) != 0) bits |= std::uint64_t{1} << element;
  }
  return bits;
}

ScanKernel pick_kernel() noexcept {
#if defined(__x86_64__)
  switch (cpu_level()) {
    case CpuLevel::avx512:
      return scan_avx512;
    case CpuLevel::avx2:
      return scan_avx2;
    case CpuLevel::portable:
      break;
  }
#endif
  return scan_portable;
}

}  // namespace

std::size_t scan_portable(const std::byte* base, const std::byte* next, std::size_t words, unsigned width,
                          std::uint64_t* mask) {
  switch (width) {
    case 1:
      return scan_words<std::uint8_t>(base, next, words, mask);
    case 2:
      return scan_words<std::uint16_t>(base, next, words, mask);
    case 4:
      return scan_words<std::uint32_t>(base, next, words, mask);
    default:
      return scan_words<std::uint64_t>(base, next, words, mask);
  }
}

std::size_t scan_changes(Bytes base, Bytes next, unsigned width, std::uint64_t* mask) noexcept {
  static const ScanKernel kernel = pick_kernel();
  const std::size_t word_bytes = std::size_t{64} * width;
  const std::size_t words = base.size() / word_bytes;
  std::size_t changed = kernel(base.data(), next.data(), words, width, mask);
  if (words * word_bytes != base.size()) {
    const std::uint64_t bits = scan_tail(base.subspan(words * word_bytes), next.subspan(words * word_bytes), width);
    mask[words] = bits;
    changed += static_cast<std::size_t>(std::popcount(bits));
  }
  return changed;
}

}  // namespace deltarelay::codec::kernels
