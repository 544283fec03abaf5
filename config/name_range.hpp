// `rollout-{000..127}`: one entry of topology.yaml for many hosts.
//
// Layer: config; pure. A range counts up or not at all; leading zeros of its first number set the width. Several ranges
// in one text count together, so they must have the same length: "10.0.{0..3}.{1..4}:7443" is four addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/units.hpp"

namespace deltarelay::config {

inline constexpr std::size_t pattern_bytes_max = 256;

/// How many texts `pattern` stands for, without making them. Refuses patterns longer than pattern_bytes_max.
[[nodiscard]] Parsed<std::uint64_t> range_length(std::string_view pattern);
/// The texts that `pattern` stands for; one, itself, if it has no range. Refuses more than `most`.
[[nodiscard]] Parsed<std::vector<std::string>> expand_ranges(std::string_view pattern, std::size_t most);
[[nodiscard]] bool has_range(std::string_view pattern) noexcept;

}  // namespace deltarelay::config
