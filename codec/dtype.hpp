// The element types of the safetensors format and the widths that the encodings work in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace deltarelay::codec {

/// Names and order of the reference implementation. The numeric values are on the wire (FORMAT.md, "dtypes"): append only.
enum class DType : std::uint8_t {
  BOOL = 0, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64,
  F8_E4M3FNUZ, F8_E5M2FNUZ,
};
inline constexpr std::size_t dtype_count = 22;

[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;
[[nodiscard]] std::string_view dtype_name(DType dtype) noexcept;
/// Bits of one element; 4 and 6 for the packed types.
[[nodiscard]] unsigned dtype_bits(DType dtype) noexcept;
/// The unit, in bytes, in which the encodings compare and step: 1 (also for packed types), 2, 4 or 8.
[[nodiscard]] unsigned element_width(DType dtype) noexcept;

}  // namespace deltarelay::codec
