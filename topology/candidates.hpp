// Where a node attaches when its parent is lost.
//
// Order: parent, grandparent, same-region peers, the region's standby, its head, whoever feeds the region, the root. A
// node whose parent is the head of its region tries the standby before it goes beyond the region: a region is entered
// once, also when its head is dead. Peers differ from child to child, so that the children of a dead node spread.
// Layer: topology, inside the planner. Pure. Every candidate has a lower rank than the node: no cycles.
#pragma once

#include <vector>

#include "topology/model.hpp"
#include "topology/plan.hpp"

namespace deltarelay::topology {

/// What candidate lists are made from: parents, ranks, regions and children of all nodes are final.
struct CandidateTask {
  const Model& model;
  const std::vector<PlanNode>& nodes;
  std::vector<HostIndex> heads;                    ///< by RegionIndex
  std::vector<std::optional<HostIndex>> standbys;  ///< by RegionIndex: lowest rank after the head
};

/// Empty for the root.
[[nodiscard]] std::vector<HostIndex> make_candidates(const CandidateTask& task, HostIndex index);

}  // namespace deltarelay::topology
