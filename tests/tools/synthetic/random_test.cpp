// Numbers by position: their moments, their bounds, and that streams are kept apart.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "tools/synthetic/random.hpp"

namespace deltarelay::synthetic {
namespace {

constexpr std::uint64_t draws = 1'000'000;

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0, largest = 0;
};

template <class Draw>
Moments moments(Draw draw) {
  double sum = 0, squares = 0, fourths = 0, largest = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const double x = draw(i);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    largest = std::max(largest, std::abs(x));
  }
  const auto n = static_cast<double>(draws);
  return {sum / n, squares / n, fourths / n, largest};
}

}  // namespace

TEST_SUITE("tools/synthetic/random") {
  TEST_CASE("updates have variance 1 and stay within 3") {
    const NumberStream stream(7, "update", "w");
    const Moments seen = moments([&](std::uint64_t i) { return stream.bell(i); });
    CHECK(seen.mean == doctest::Approx(0).epsilon(0.005));
    CHECK(seen.variance == doctest::Approx(1).epsilon(0.01));
    CHECK(seen.largest <= 3);
  }

  TEST_CASE("weights are close to normal") {
    const NumberStream stream(7, "weights", "w");
    const Moments seen = moments([&](std::uint64_t i) { return stream.normal(i); });
    CHECK(seen.mean == doctest::Approx(0).epsilon(0.005));
    CHECK(seen.variance == doctest::Approx(1).epsilon(0.01));
    CHECK(seen.kurtosis == doctest::Approx(2.8).epsilon(0.02));  // 3 less 1.2 / 6, of six uniform numbers
    CHECK(seen.largest > 3.5);
  }

  TEST_CASE("residues fill the rounding interval evenly") {
    const NumberStream stream(7, "residue", "w");
    const Moments seen = moments([&](std::uint64_t i) { return stream.centred(i); });
    CHECK(seen.variance == doctest::Approx(1.0 / 12).epsilon(0.01));
    CHECK(seen.largest <= 0.5);
  }

  TEST_CASE("another seed, purpose or name is another stream; the same is the same") {
    std::set<std::uint64_t> first;
    first.insert(NumberStream(1, "update", "w").bits(5));
    first.insert(NumberStream(2, "update", "w").bits(5));
    first.insert(NumberStream(1, "weights", "w").bits(5));
    first.insert(NumberStream(1, "update", "v").bits(5));
    first.insert(NumberStream(1, "update", "w").bits(6));
    CHECK(first.size() == 5);
    CHECK(NumberStream(1, "update", "w").bits(5) == NumberStream(1, "update", "w").bits(5));
  }
}

}  // namespace deltarelay::synthetic
