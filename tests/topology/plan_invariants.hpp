// What holds for every plan, whatever the model.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "topology/plan.hpp"

namespace deltarelay::tests {

inline void check_ranks(const topology::Plan& plan, std::size_t hosts) {
  REQUIRE(plan.nodes().size() == hosts);
  REQUIRE(plan.by_rank().size() == hosts);
  std::vector<bool> seen(hosts);
  for (std::size_t rank = 0; rank < hosts; ++rank) {
    const topology::HostIndex index = plan.by_rank()[rank];
    CHECK(plan.node(index).rank == rank);
    CHECK_FALSE(seen.at(topology::raw(index)));
    seen.at(topology::raw(index)) = true;
  }
  CHECK(plan.root().rank == 0);
  CHECK_FALSE(plan.root().parent.has_value());
}

/// Parents have lower ranks, know their children, and nothing carries more than it can.
inline void check_edges(const topology::Model& model, const topology::Plan& plan) {
  for (std::size_t h = 0; h < model.hosts.size(); ++h) {
    const topology::HostIndex index{static_cast<std::uint32_t>(h)};
    const topology::PlanNode& node = plan.node(index);
    const topology::Host& host = model.hosts[h];
    CAPTURE(node.name);
    CHECK(node.name == host.name);
    CHECK(node.region == model.region_of(host).name);
    CHECK(node.parent.has_value() == (index != model.root));
    CHECK(node.children.size() <= host.max_children);
    std::uint64_t sent = 0;
    for (const topology::HostIndex child : node.children) {
      CHECK(plan.node(child).parent == index);
      sent += plan.node(child).inbound.bytes_per_second;
    }
    CHECK(sent <= host.uplink.bytes_per_second);
    CHECK(std::is_sorted(node.children.begin(), node.children.end(),
                         [&](auto a, auto b) { return plan.node(a).rank < plan.node(b).rank; }));
    if (!node.parent) continue;
    const topology::PlanNode& parent = plan.node(*node.parent);
    const topology::Host& feeder = model.hosts[topology::raw(*node.parent)];
    CHECK(parent.rank < node.rank);
    CHECK(node.depth == parent.depth + 1);
    CHECK(std::count(parent.children.begin(), parent.children.end(), index) == 1);
    CHECK(node.inbound > topology::Rate{0});
    CHECK(node.inbound <= host.downlink);
    if (parent.parent) CHECK(node.inbound <= parent.inbound);
    if (feeder.region != host.region) {
      const topology::Link* link = model.link_between(feeder.region, host.region);
      REQUIRE(link != nullptr);
      CHECK(node.inbound <= link->rate);
    }
  }
}

/// Each region is entered once, at its head; the root's region at the root.
inline void check_entries(const topology::Model& model, const topology::Plan& plan) {
  std::vector<std::size_t> entries(model.regions.size());
  for (const topology::HostIndex index : plan.by_rank()) {
    const topology::PlanNode& node = plan.node(index);
    const auto region = model.hosts[topology::raw(index)].region;
    const bool enters = !node.parent || model.hosts[topology::raw(*node.parent)].region != region;
    CHECK(node.region_head == enters);
    if (enters) ++entries[topology::raw(region)];
  }
  for (const std::size_t count : entries) CHECK(count == 1);
}

/// Candidates begin with the parent, have the root as last resort, have lower ranks and may have children.
inline void check_candidates(const topology::Model& model, const topology::Plan& plan) {
  for (const topology::HostIndex index : plan.by_rank()) {
    const topology::PlanNode& node = plan.node(index);
    CAPTURE(node.name);
    if (!node.parent) {
      CHECK(node.candidates.empty());
      continue;
    }
    REQUIRE_FALSE(node.candidates.empty());
    CHECK(node.candidates.front() == *node.parent);
    // The root's own children have it first, and peers after it for when only their way to the root is lost.
    if (*node.parent != plan.root_index()) CHECK(node.candidates.back() == plan.root_index());
    CHECK(node.candidates.size() <= model.limits.max_candidates);
    auto sorted = node.candidates;
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
    for (const topology::HostIndex candidate : node.candidates) {
      CHECK(plan.node(candidate).rank < node.rank);
      if (candidate != plan.root_index()) CHECK(model.hosts[topology::raw(candidate)].max_children > 0);
    }
  }
}

inline void check_plan(const topology::Model& model, const topology::Plan& plan) {
  check_ranks(plan, model.hosts.size());
  check_edges(model, plan);
  check_entries(model, plan);
  check_candidates(model, plan);
  CHECK(plan.mesh() == model.mesh);
  CHECK(plan.epoch() == model.plan_epoch);
  CHECK(plan.digest().size() == 16);
}

}  // namespace deltarelay::tests
