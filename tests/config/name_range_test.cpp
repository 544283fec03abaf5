// Ranges of names: `rollout-{000..127}`.
#include "config/name_range.hpp"

#include <doctest/doctest.h>

using namespace deltarelay::config;
using Texts = std::vector<std::string>;

namespace {

std::string why(std::string_view pattern, std::size_t most = 100) {
  const auto parsed = expand_ranges(pattern, most);
  return parsed ? std::string("was taken") : parsed.error().why;
}

}  // namespace

TEST_SUITE("config/name_range") {
  TEST_CASE("text without a range stands for itself") {
    CHECK(expand_ranges("hel-01", 1).value() == Texts{"hel-01"});
    CHECK(range_length("hel-01").value() == 1);
    CHECK_FALSE(has_range("hel-01"));
    CHECK(has_range("hel-{1..2}"));
    CHECK(has_range("hel-}"));
  }

  TEST_CASE("a range counts up, with the width that leading zeros set") {
    const auto names = expand_ranges("rollout-{000..127}", 128).value();
    REQUIRE(names.size() == 128);
    CHECK(names.front() == "rollout-000");
    CHECK(names[9] == "rollout-009");
    CHECK(names[99] == "rollout-099");
    CHECK(names.back() == "rollout-127");
    CHECK(expand_ranges("a{8..11}b", 9).value() == Texts{"a8b", "a9b", "a10b", "a11b"});
    CHECK(expand_ranges("{08..11}", 9).value() == Texts{"08", "09", "10", "11"});
    CHECK(expand_ranges("x{5..5}", 9).value() == Texts{"x5"});
    CHECK(expand_ranges("{0..2}", 9).value() == Texts{"0", "1", "2"});
  }

  TEST_CASE("several ranges in one text count together") {
    CHECK(expand_ranges("10.0.{0..2}.{1..3}:7443", 9).value() ==
          Texts{"10.0.0.1:7443", "10.0.1.2:7443", "10.0.2.3:7443"});
    CHECK(why("{0..2}-{0..3}") == "has ranges of different lengths");
  }

  TEST_CASE("what is no range is refused with a reason, never taken as text") {
    for (const std::string pattern :
         {"a{", "a}", "a{}", "a{1}", "a{1..}", "a{..2}", "a{1...2}", "a{1..2", "a{{1..2}}", "a{1..2}}", "a{a..c}",
          "a{-1..2}", "a{1..2..3}", "a{ 1..2}", "a{0x1..0x2}", "a{1,2}", "a{1-2}"}) {
      CAPTURE(pattern);
      CHECK(why(pattern) == "has a malformed range; write for example {000..127}");
    }
    CHECK(why("a{2..1}") == "has a range that counts down");
    CHECK(why("a{00..100}") == "has a range whose two numbers differ in width");
    CHECK(why("a{1..007}") == "has a range whose two numbers differ in width");
  }

  TEST_CASE("C64: a range is counted before it is made, so a few bytes never cost more than what is allowed") {
    CHECK(why("a{0..999999999}") == "is a range of more than 100");
    CHECK(range_length("a{0..999999999}").value() == 1'000'000'000);
    CHECK(why("a{0..99999999999999999999}") == "has a malformed range; write for example {000..127}");
    CHECK(why("a{0..100}") == "is a range of more than 100");
    CHECK(expand_ranges("a{0..99}", 100).value().size() == 100);
    CHECK(expand_ranges(std::string(256, 'a'), 1).has_value());
    CHECK(why(std::string(257, 'a')) == "is longer than 256 bytes");
  }
}
