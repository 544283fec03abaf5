// Which region feeds which: every region is entered once, over the widest path from the root's region.
//
// Layer: topology, inside the planner. Pure; ties end with the order of the file, so one model has one tree.
#pragma once

#include <optional>
#include <vector>

#include "topology/model.hpp"

namespace deltarelay::topology {

struct RegionEntry {
  bool reached = false;
  std::optional<RegionIndex> parent;  ///< none for the root's region
  Rate path_rate;                     ///< the narrowest link between the root's region and this one
};

struct RegionTree {
  std::vector<RegionEntry> entries;  ///< by RegionIndex
  std::vector<RegionIndex> order;    ///< reached regions, parents before the regions they feed
};

[[nodiscard]] RegionTree make_region_tree(const Model& model);

}  // namespace deltarelay::topology
