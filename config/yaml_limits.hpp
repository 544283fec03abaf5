// What text must satisfy before a YAML parser may see it.
//
// Layer: config. One pass over the bytes, no allocation. yaml-cpp recurses once per nesting level and queues one token
// per indicator, so both are counted here first, roughly and rather too high: brackets in plain words count too.
#pragma once

#include <string_view>

#include "config/findings.hpp"

namespace deltarelay::config {

/// Size, NUL and other control characters, UTF-8, tabs where YAML forbids them, nesting, number of indicators. Adds a
/// finding and returns false at the first that is violated.
[[nodiscard]] bool within_yaml_limits(std::string_view text, Findings& findings);

}  // namespace deltarelay::config
