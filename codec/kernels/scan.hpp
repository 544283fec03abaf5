// Compares an old and a new block and marks, one bit per element, what changed: the first pass of every encoding.
//
// A bit mask and not a list of positions: it costs one store per 64 elements whatever changed, its popcount is the
// change count that the choice of encoding needs, and positions fall out of it with one instruction each.
// Pure functions; never read past the spans (a block may end at the end of a mapping); any alignment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/types.hpp"

namespace deltarelay::codec::kernels {

/// Words of 64 bits that a mask of `elements` takes.
[[nodiscard]] constexpr std::size_t mask_words(std::size_t elements) noexcept {
  return (elements + 63) / 64;
}

/// Sets bit i % 64 of mask[i / 64] where element i differs, clears it elsewhere; returns how many differ.
/// REQUIRES base.size() == next.size(), a multiple of `width` (1, 2, 4 or 8), and mask_words() words at `mask`.
std::size_t scan_changes(Bytes base, Bytes next, unsigned width, std::uint64_t* mask) noexcept;

/// One kernel: whole words only, 64 * width bytes each.
using ScanKernel = std::size_t (*)(const std::byte* base, const std::byte* next, std::size_t words, unsigned width,
                                   std::uint64_t* mask);
std::size_t scan_portable(const std::byte* base, const std::byte* next, std::size_t words, unsigned width,
                          std::uint64_t* mask);
#if defined(__x86_64__)
std::size_t scan_avx2(const std::byte* base, const std::byte* next, std::size_t words, unsigned width,
                      std::uint64_t* mask);
std::size_t scan_avx512(const std::byte* base, const std::byte* next, std::size_t words, unsigned width,
                        std::uint64_t* mask);
#endif

}  // namespace deltarelay::codec::kernels
