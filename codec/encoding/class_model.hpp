// What the class blocks of a frame share: how elements are told apart by their old value, and how gaps and steps are
// distributed in each part. FORMAT.md, "class".
//
// The class of an element follows from its OLD value alone, so that the receiver knows it: the key is the eight bits
// below the sign bit, for BF16 and F32 the exponent. Small weights change far more often than large ones, because an
// update has a size and the spacing of values grows with them: within a class, changes are as good as independent.
// Keys are parted twice, into classes for gaps and into contexts for steps: the best cuts for one cost 2 % of the size
// when they must serve the other as well.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/encoding/changes.hpp"
#include "codec/encoding/frequencies.hpp"
#include "codec/kernels/class_scan.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {

inline constexpr unsigned class_count_max = kernels::classes_max;
inline constexpr unsigned class_models_max = 16;  ///< of one frame
/// A gap token below it is a change; the escape itself is a stretch without one.
inline constexpr unsigned gap_escape = 15;
inline constexpr unsigned gap_tokens = gap_escape + 1;
inline constexpr unsigned gap_low_bits_max = 22;
static_assert((std::size_t{1} << gap_low_bits_max) >= block_bytes_max);

template <class Element>
[[nodiscard]] constexpr std::uint8_t class_key(Element old) noexcept {
  return static_cast<std::uint8_t>(static_cast<Element>(old << 1) >> (8 * sizeof(Element) - 8));
}

/// One class. A gap token t < gap_escape is a change after (t << low_bits) + low bits elements of the class that did
/// not change; gap_escape is (gap_escape << low_bits) elements of it without a change.
struct GapCode {
  unsigned low_bits = 0;
  Frequencies tokens;
};

/// The 256 keys in intervals.
struct KeyParts {
  unsigned count = 1;
  std::array<std::uint8_t, class_count_max> first_key{};  ///< strictly ascending, the first is 0
  [[nodiscard]] std::array<std::uint8_t, 256> part_of() const noexcept;
};

[[nodiscard]] kernels::ClassMap class_map(const KeyParts& classes) noexcept;

struct ClassModel {
  KeyParts classes, contexts;
  std::array<GapCode, class_count_max> gaps;       ///< by class
  std::array<Frequencies, class_count_max> steps;  ///< step tokens (changes.hpp) by context

  [[nodiscard]] kernels::ClassMap map() const noexcept { return class_map(classes); }
};

/// The `tables` of a frame with class blocks.
[[nodiscard]] std::vector<std::byte> write_class_models(std::span<const ClassModel> models);
/// The inverse. Errors: truncated, trailing_bytes, malformed_payload.
[[nodiscard]] Result<std::vector<ClassModel>> read_class_models(Bytes tables);

}  // namespace deltarelay::codec
