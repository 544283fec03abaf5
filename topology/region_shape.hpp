// The tree inside one region: who feeds whom at which rate, and which hosts feed the regions beyond.
//
// One stream rate r holds for the whole region. A host then carries uplink / r children, so a high rate makes a deep
// tree (a chain at the limit) and a low one a flat tree:
//
//   time(r) = payload / r  +  depth(r) x (frame / r + handling + rtt / 2)
//
// Rates worth trying are those at which some host gains or loses a child. Of the rates within one per cent of the best
// time the one with the shortest way to the hosts is taken: depth costs small refits time and every refit robustness.
// Layer: topology, inside the planner. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "topology/model.hpp"

namespace deltarelay::topology {

/// A region that this one feeds.
struct Egress {
  RegionIndex region{};
  Rate rate;  ///< what link and receiving head carry
  Duration rtt{};
  std::size_t hosts = 1;  ///< that get the refit over it, in the region and beyond
};

/// What the shape of a region depends on.
struct RegionTask {
  HostIndex head{};
  Rate inbound{std::numeric_limits<std::uint64_t>::max()};  ///< what reaches the head; the root has all of it at once
  std::vector<HostIndex> hosts;                             ///< without the head, in file order
  std::vector<Egress> egress;
  Duration rtt{};
  std::uint64_t payload_bytes = 0;
};

/// One edge, within the region or to the head of another one.
struct Edge {
  HostIndex from{};
  std::optional<HostIndex> host;      ///< either a host of the region
  std::optional<std::size_t> egress;  ///< or the place of another region in RegionTask::egress
  Rate rate;
};

struct RegionShape {
  Rate rate;
  std::vector<Edge> edges;  ///< in the order in which the hosts get them
  double done_seconds = 0;  ///< when the last host of the region, or the entry of a region beyond, has everything
  double mean_arrival_seconds = 0;  ///< over the hosts of the region and, at their entry, those of the regions beyond
};

/// The shape at one rate; none if the hosts cannot all be fed at it.
[[nodiscard]] std::optional<RegionShape> shape_at(const Model& model, const RegionTask& task, Rate rate);
/// The best shape; none if the hosts cannot be fed at any rate, because too few of them may have children.
[[nodiscard]] std::optional<RegionShape> best_shape(const Model& model, const RegionTask& task);

}  // namespace deltarelay::topology
