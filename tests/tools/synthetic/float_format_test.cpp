// Rounding to the stored formats, checked at every boundary between two neighbouring values.
#include <doctest/doctest.h>

#include <cmath>

#include "tools/synthetic/float_format.hpp"

namespace deltarelay::synthetic {
namespace {

/// What `value` must round to is known at each value, at each midpoint, and on both sides of it.
template <class Format>
std::size_t wrong_roundings() {
  using Bits = typename Format::Bits;
  std::size_t wrong = 0;
  const auto expect = [&wrong](float value, unsigned magnitude) {
    wrong += Format::round(value) != static_cast<Bits>(magnitude);
    wrong += Format::round(-value) != static_cast<Bits>(magnitude | Format::sign_bit);
  };
  for (unsigned lower = 0; lower + 1 < Format::infinity; ++lower) {
    const unsigned upper = lower + 1;
    const float below = Format::widen(static_cast<Bits>(lower)), above = Format::widen(static_cast<Bits>(upper));
    expect(below, lower);
    const auto middle = static_cast<float>((static_cast<double>(below) + static_cast<double>(above)) / 2);
    expect(middle, lower % 2 == 0 ? lower : upper);
    expect(std::nextafter(middle, 0.0F), lower);
    expect(std::nextafter(middle, INFINITY), upper);
  }
  return wrong;
}

}  // namespace

TEST_SUITE("tools/synthetic/float_format") {
  TEST_CASE("BF16 rounds to nearest, ties to even, between every two neighbours") {
    CHECK(wrong_roundings<Bf16>() == 0);
  }

  TEST_CASE("F16 rounds to nearest, ties to even, between every two neighbours, subnormal ones too") {
    CHECK(wrong_roundings<F16>() == 0);
    CHECK(F16::round(65504.0F) == 0x7bff);
    CHECK(F16::round(65519.9F) == 0x7bff);
    CHECK(F16::round(65520.0F) == F16::infinity);
    CHECK(F16::round(1e30F) == F16::infinity);
    CHECK(F16::round(0x1p-25F) == 0);
    CHECK(F16::round(-0x1p-30F) == 0x8000);
  }

  TEST_CASE("widening gives the value that the pattern stands for") {
    CHECK(Bf16::widen(0x3f80) == 1.0F);
    CHECK(Bf16::widen(0xbe20) == -0.15625F);
    CHECK(F16::widen(0x3c00) == 1.0F);
    CHECK(F16::widen(0xc248) == -3.140625F);
    CHECK(F16::widen(0x0001) == 0x1p-24F);
    CHECK(std::isinf(F16::widen(0xfc00)));
    CHECK(std::isnan(F16::widen(0x7c01)));
    CHECK(std::signbit(F16::widen(0x8000)));
  }
}

}  // namespace deltarelay::synthetic
