// The passes of the class encoding over a block: which element belongs to which class, and where the changes are.
//
// Within a class, elements are numbered in order: the rank. The encoder turns changed positions into ranks, the decoder
// turns marks (one bit per rank, one bitmap per class) back into a mask of positions. Both walk 64 elements at a time
// and keep a count per class; no kernel branches on a single element. Pure functions; never read past the elements they
// are given. Whole words of 64 elements go to a kernel of this processor, the tail to the portable one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/types.hpp"

namespace deltarelay::codec::kernels {

inline constexpr unsigned classes_max = 8;

/// The classes of a model as the kernels want them. Keys as class_key() in encoding/class_model.hpp.
struct ClassMap {
  unsigned count = 1;
  std::array<std::uint8_t, classes_max> first_key{};
  std::array<std::uint8_t, 256> class_of{};
  alignas(64) std::array<std::uint8_t, 256> class_bit{};  ///< 1 << class_of
};

/// What the encoder collects. Ranks go up within a class; keys and steps are in order of position.
struct ClassSplit {
  std::array<std::uint32_t*, classes_max> ranks{};   ///< next place to write, one per class
  std::array<std::uint32_t, classes_max> members{};  ///< elements seen so far
  std::uint8_t* keys = nullptr;                      ///< next place to write; 64 bytes of slack
  std::byte* steps = nullptr;  ///< next place to write next - base as a pattern of the width; 64 bytes of slack
};
/// `changed` is scan_changes()'s mask of these elements.
void class_split(const ClassMap& map, const std::byte* base, const std::byte* next, unsigned width,
                 std::size_t elements, const std::uint64_t* changed, ClassSplit& out) noexcept;

/// The marks of all classes: class c's begin at bits + c * stride_bytes. 8 readable bytes after the last.
struct ClassMarks {
  const std::byte* bits = nullptr;
  std::size_t stride_bytes = 0;
  std::array<std::uint32_t, classes_max> members{};  ///< elements seen so far: the next rank
};
/// Sets the words of `changed` for these elements and appends the old key of each change to `keys` (64 bytes of slack).
/// Returns how many changed.
std::size_t class_find(const ClassMap& map, const std::byte* base, unsigned width, std::size_t elements,
                       ClassMarks& marks, std::uint64_t* changed, std::uint8_t* keys) noexcept;

/// Writes base, with the steps added to what changed, to `out`. 64 readable bytes after the last step. Returns the
/// steps used.
std::size_t apply_steps(const std::byte* base, unsigned width, std::size_t elements, const std::uint64_t* changed,
                        const std::byte* steps, std::byte* out) noexcept;

/// One set of kernels; all give the same results. Those but the portable set take whole words of 64 elements of at most
/// class_width_max bytes: F64 weights are too rare to be worth code.
inline constexpr unsigned class_width_max = 4;
struct ClassKernels {
  decltype(&class_split) split;
  decltype(&class_find) find;
  decltype(&apply_steps) apply;
};
extern const ClassKernels class_kernels_portable;
#if defined(__x86_64__)
extern const ClassKernels class_kernels_avx2;
extern const ClassKernels class_kernels_avx512;  ///< also needs VBMI, VBMI2, GFNI and VPOPCNTDQ
[[nodiscard]] bool class_kernels_avx512_run_here() noexcept;
#endif

}  // namespace deltarelay::codec::kernels
