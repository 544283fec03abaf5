// topology.yaml: from text to a checked topology::Model.
//
// Layer: config. Everything that can be wrong with the file is found in one pass and named with its place; a model that
// comes out has unique names and addresses, indexes in range, every region reachable from the root, and a plan.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "config/findings.hpp"
#include "topology/model.hpp"
#include "topology/plan.hpp"

namespace deltarelay::config {

/// `model` and `plan` are there exactly when `findings` is empty.
struct LoadedTopology {
  std::optional<topology::Model> model;
  std::optional<topology::Plan> plan;
  Findings findings;
};

/// Reads the file, checks it, and plans.
[[nodiscard]] LoadedTopology load_topology(const std::filesystem::path& file);
/// The same from text that is already in memory; `file` names it in findings.
[[nodiscard]] LoadedTopology parse_topology(const std::filesystem::path& file, std::string_view text);

}  // namespace deltarelay::config
