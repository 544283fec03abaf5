// Hints for mistyped words.
#include "config/nearest_name.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace deltarelay::config;

TEST_SUITE("config/nearest_name") {
  TEST_CASE("the nearest known name is found within two edits and one in a short word") {
    const std::vector<std::string_view> known{"uplink", "downlink", "name", "rtt", "max_children"};
    CHECK(nearest_name("upllink", known) == "uplink");
    CHECK(nearest_name("uplnik", known) == "uplink");
    CHECK(nearest_name("nmae", known) == "name");
    CHECK(nearest_name("max_childs", known).empty());
    CHECK(nearest_name("max_childrn", known) == "max_children");
    CHECK(nearest_name("rt", known) == "rtt");
    CHECK(nearest_name("b2", {"b1", "root"}) == "b1");
    CHECK(nearest_name("x", known).empty());
    CHECK(nearest_name("yaml", known).empty());  // two edits from "name": half of it is something else
    CHECK(nearest_name("", known).empty());
    CHECK(nearest_name("rates", known).empty());
    CHECK(nearest_name(std::string(65, 'u'), known).empty());
    CHECK(did_you_mean("upllink", known) == " (did you mean \"uplink\"?)");
    CHECK(did_you_mean("colour", known).empty());
  }
}

}  // namespace
