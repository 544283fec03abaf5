// What changed between two checkpoints, element by element: how often by the exponent of the old value, and by which
// step of the bit pattern; and the entropy bounds that follow from the counts.
//
// A change is a step of the pattern modulo 2^w, as in the codec; exponents are read from the bits, values never are.
// One ChangeStats per thread; merge() adds them up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/dtype.hpp"
#include "codec/encoding/changes.hpp"

namespace deltarelay::relayctl {

/// Where a dtype keeps its exponent. `bits` 0: none, one class for all values.
struct ExponentField {
  unsigned shift = 0, bits = 0;
  int bias = 0;
  bool all_ones_is_special = false;  ///< infinity and NaN
};
[[nodiscard]] ExponentField exponent_field(codec::DType dtype) noexcept;

inline constexpr unsigned step_tokens_max = codec::step_token_count(8);

/// Elements whose old value has one exponent.
struct ExponentStats {
  std::uint64_t elements = 0, changed = 0;
  std::array<std::uint64_t, step_tokens_max> steps{};  ///< by codec::StepToken
};

struct DTypeStats {
  std::uint64_t elements = 0, changed = 0;
  std::vector<ExponentStats> exponents;  ///< by the exponent field; empty: no element of this dtype was seen
};

/// Least bytes that a code needs which knows only the counts, of all dtypes together.
struct ChangeBounds {
  double order0_bytes = 0;          ///< one chance of a change, one table of steps per dtype
  double given_exponent_bytes = 0;  ///< the same per exponent of the old value
};

/// Changes of at least `magnitude_min` and at most `magnitude_max` steps, by sign.
struct StepRow {
  std::uint64_t magnitude_min = 0, magnitude_max = 0, up = 0, down = 0;
};

class ChangeStats {
 public:
  /// REQUIRES spans of equal size.
  void add_block(codec::DType dtype, codec::Bytes base, codec::Bytes next);
  void merge(const ChangeStats& other);

  [[nodiscard]] const std::array<DTypeStats, codec::dtype_count>& dtypes() const noexcept { return dtypes_; }
  [[nodiscard]] std::uint64_t elements() const noexcept;
  [[nodiscard]] std::uint64_t changed() const noexcept;
  [[nodiscard]] ChangeBounds bounds() const;
  /// Rows that are not empty, small steps first.
  [[nodiscard]] std::vector<StepRow> steps() const;

 private:
  template <class Element>
  void add_elements(DTypeStats& stats, ExponentField field, codec::Bytes base, codec::Bytes next);

  std::array<DTypeStats, codec::dtype_count> dtypes_;
  std::vector<std::uint64_t> mask_;
};

}  // namespace deltarelay::relayctl
