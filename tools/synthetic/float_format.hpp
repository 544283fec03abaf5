// The stored formats that the trainer can round its FP32 master weights to: widening is exact, rounding is to nearest,
// ties to even, as GPUs do it.
//
// In software and on bit patterns: the result must not depend on what the compiler or processor offers. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "codec/dtype.hpp"

namespace deltarelay::synthetic {

struct Bf16 {
  using Bits = std::uint16_t;
  static constexpr Bits sign_bit = 0x8000, infinity = 0x7f80;
  [[nodiscard]] static float widen(Bits bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  /// REQUIRES a finite value.
  [[nodiscard]] static Bits round(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<Bits>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
};

struct F16 {
  using Bits = std::uint16_t;
  static constexpr Bits sign_bit = 0x8000, infinity = 0x7c00;
  [[nodiscard]] static float widen(Bits bits) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & sign_bit) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
    if (exponent == 0) {  // subnormal: a multiple of 2^-24, which a float holds exactly
      const float value = static_cast<float>(mantissa) * 0x1p-24F;
      return sign != 0 ? -value : value;
    }
    const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
  }
  /// REQUIRES a finite value; past the largest F16 it becomes infinity.
  [[nodiscard]] static Bits round(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude >= 0x47800000u) return static_cast<Bits>(sign | infinity);  // 2^16 and more
    if (magnitude < 0x38800000u) {  // below 2^-14: the float adder does the rounding to a multiple of 2^-24
      const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<Bits>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u));
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<Bits>(sign | ((rounded >> 13) - (112u << 10)));
  }
};

/// Stored in full: such tensors are their own masters.
struct F32 {
  using Bits = std::uint32_t;
  static constexpr Bits sign_bit = 0x80000000u, infinity = 0x7f800000u;
  [[nodiscard]] static float widen(Bits bits) noexcept { return std::bit_cast<float>(bits); }
  [[nodiscard]] static Bits round(float value) noexcept { return std::bit_cast<std::uint32_t>(value); }
};

/// Whether the trainer moves tensors of this type; all others are carried over as they are.
[[nodiscard]] constexpr bool trainable(codec::DType dtype) noexcept {
  return dtype == codec::DType::BF16 || dtype == codec::DType::F16 || dtype == codec::DType::F32;
}
/// Whether FP32 masters are kept beside the stored values.
[[nodiscard]] constexpr bool has_masters(codec::DType dtype) noexcept {
  return dtype == codec::DType::BF16 || dtype == codec::DType::F16;
}

/// Calls `visit` with the format of `dtype`. REQUIRES trainable(dtype).
template <class Visit>
decltype(auto) with_format(codec::DType dtype, Visit&& visit) {
  if (dtype == codec::DType::BF16) return visit(Bf16{});
  if (dtype == codec::DType::F16) return visit(F16{});
  return visit(F32{});
}

}  // namespace deltarelay::synthetic
