#include "codec/dtype.hpp"

#include <array>

namespace deltarelay::codec {
namespace {

struct Facts {
  std::string_view name;
  unsigned bits;
  unsigned width;
};

// In the order of the enumerators. A complex number is two floats to the encodings: its step is the step of a part.
constexpr std::array<Facts, dtype_count> facts{{
    {"BOOL", 8, 1}, {"F4", 4, 1},      {"F6_E2M3", 6, 1}, {"F6_E3M2", 6, 1}, {"U8", 8, 1},
    {"I8", 8, 1},   {"F8_E5M2", 8, 1}, {"F8_E4M3", 8, 1}, {"F8_E8M0", 8, 1}, {"I16", 16, 2},
    {"U16", 16, 2}, {"F16", 16, 2},    {"BF16", 16, 2},   {"I32", 32, 4},    {"U32", 32, 4},
    {"F32", 32, 4}, {"C64", 64, 4},    {"F64", 64, 8},    {"I64", 64, 8},    {"U64", 64, 8},
    {"F8_E4M3FNUZ", 8, 1}, {"F8_E5M2FNUZ", 8, 1},
}};
static_assert(static_cast<std::size_t>(DType::F8_E5M2FNUZ) + 1 == dtype_count);

const Facts& facts_of(DType dtype) noexcept {
  return facts[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < facts.size(); ++i)
    if (facts[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::string_view dtype_name(DType dtype) noexcept {
  return facts_of(dtype).name;
}

unsigned dtype_bits(DType dtype) noexcept {
  return facts_of(dtype).bits;
}

unsigned element_width(DType dtype) noexcept {
  return facts_of(dtype).width;
}

}  // namespace deltarelay::codec
