// A mesh of six nodes in two regions, planned by the real planner, and records as its nodes would send them.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "relay/admin/fleet_view.hpp"
#include "topology/plan.hpp"

namespace deltarelay::relay::admin::testing {

using namespace std::chrono_literals;

/// Every moment of these tests is counted from here, on both clocks.
inline const Instant start_instant{1000h};
inline const Time start_time = std::chrono::sys_days{std::chrono::year{2026} / 1 / 31} + 14h;

inline topology::Host sample_host(const std::string& name, std::uint32_t region, std::uint64_t uplink) {
  topology::Host host;
  host.name = name;
  host.region = topology::RegionIndex{region};
  host.address.host = name + ".example";
  host.address.port = 7443;
  host.uplink.bytes_per_second = uplink;
  host.downlink.bytes_per_second = uplink;
  host.max_children = 2;
  return host;
}

/// trn-00 feeds use-01, that feeds hel-01, that feeds hel-02 and hel-03, and hel-02 feeds hel-04.
inline topology::Plan sample_plan() {
  topology::Model model;
  model.mesh = "prod";
  model.plan_epoch = 31;
  for (const char* name : {"us-east", "eu-north"}) {
    topology::Region region;
    region.name = name;
    region.lan_rate.bytes_per_second = 1'250'000'000;
    model.regions.push_back(region);
  }
  topology::Link link;
  link.from = topology::RegionIndex{0};
  link.to = topology::RegionIndex{1};
  link.rate.bytes_per_second = 125'000'000;
  link.rtt = std::chrono::milliseconds(104);
  model.links.push_back(link);
  model.hosts.push_back(sample_host("trn-00", 0, 1'250'000'000));
  model.hosts.back().max_children = 1;
  model.hosts.push_back(sample_host("use-01", 0, 1'250'000'000));
  model.hosts.push_back(sample_host("hel-01", 1, 1'300'000'000));
  for (const char* name : {"hel-02", "hel-03", "hel-04"}) model.hosts.push_back(sample_host(name, 1, 1'250'000'000));
  auto result = topology::make_plan(model);
  REQUIRE(result.plan);
  return std::move(*result.plan);
}

inline NodeRecord sample_record(const std::string& name, const std::string& parent, std::uint64_t committed) {
  NodeRecord record;
  record.name = name;
  record.parent = parent;
  record.state = NodeState::idle;
  record.committed = Version{committed};
  return record;
}

/// `record` in the middle of receiving `version`.
inline NodeRecord receiving(NodeRecord record, std::uint64_t version, std::uint64_t received, std::uint64_t applied) {
  record.state = NodeState::receiving;
  record.receiving = Version{version};
  record.frames_received = received;
  record.frames_applied = applied;
  record.received_bytes = received * 1'000'000;
  return record;
}

/// Everybody where the plan wants them, at version 7.
inline FleetInput sample_input(const topology::Plan& plan) {
  FleetInput input;
  input.mesh = plan.mesh();
  input.node = plan.root().name;
  input.is_root = true;
  input.started = start_time - std::chrono::hours(147);
  input.image_version = Version{7};
  input.epoch = Epoch{14};
  input.policy.quorum = 0.5;
  input.plan = &plan;
  input.now = start_instant;
  input.at = start_time;
  for (const auto& node : plan.nodes()) {
    const std::string parent = node.parent ? plan.node(*node.parent).name : "";
    input.records[node.name] = sample_record(node.name, parent, 7);
  }
  return input;
}

}  // namespace deltarelay::relay::admin::testing
