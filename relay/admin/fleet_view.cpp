#include "relay/admin/fleet_view.hpp"

#include <algorithm>

#include "relay/admin/fleet_rows.hpp"

namespace deltarelay::relay::admin {
namespace {

std::vector<Problem> problems_of(const Health& health) {
  std::vector<Problem> problems;
  for (const Check& check : health.checks) {
    Problem problem;
    problem.code = check.code;
    problem.node = check.node;
    problem.text = check.text;
    problems.push_back(std::move(problem));
  }
  return problems;
}

std::optional<Time> committed_at(const Fleet& fleet, Version version) {
  const FleetInput& input = fleet.input();
  if (codec::raw(version) == 0) return std::nullopt;
  const RefitSummary& refit = input.refit;
  if (refit.phase == RefitSummary::Phase::committed && refit.version == version && refit.decided) {
    return fleet.time_of(*refit.decided);
  }
  const VersionRow* row = input.history == nullptr ? nullptr : input.history->find(version);
  return row == nullptr ? std::nullopt : row->at;
}

NodesDocument head_of_nodes(const Fleet& fleet) {
  const FleetInput& input = fleet.input();
  NodesDocument document;
  document.at = input.at;
  document.mesh = input.mesh;
  document.root = input.plan->root().name;
  document.committed_version = committed_version(input);
  document.in_flight_version = fleet.in_flight();
  return document;
}

}  // namespace

FleetInput fleet_input(const Node& node, const topology::Plan& plan, Instant now, Time at) {
  FleetInput input;
  input.mesh = plan.mesh();
  input.node = node.config().name;
  input.is_root = node.config().is_root;
  input.records = node.records();
  input.refit = node.refit();
  input.policy = node.policy();
  input.image_version = node.image().version;
  input.epoch = node.epoch();
  input.plan = &plan;
  input.now = now;
  input.at = at;
  return input;
}

Version committed_version(const FleetInput& input) {
  Version version = input.image_version;
  if (input.is_root && input.refit.phase == RefitSummary::Phase::committed)
    version = std::max(version, input.refit.version);
  if (!input.is_root || input.history == nullptr) return version;
  for (const VersionRow& row : input.history->rows())  // newest first; the image may not be open yet
    if (row.result != "aborted") return std::max(version, row.version);
  return version;
}

StatusDocument status_document(const FleetInput& input) {
  const Fleet fleet(input);
  StatusDocument document;
  document.at = input.at;
  document.mesh = input.mesh;
  document.node = input.node;
  document.role = input.is_root ? "root" : "relay";
  document.root = input.plan->root().name;
  document.epoch = input.epoch;
  document.started = input.started;
  document.plan.epoch = Epoch{input.plan->epoch()};
  document.plan.digest = input.plan->digest();
  document.health = health_view(fleet);
  document.problems = problems_of(document.health);
  document.committed.version = committed_version(input);
  document.committed.at = committed_at(fleet, document.committed.version);
  document.committed.policy = policy_text(input.policy);
  for (const FleetNode& node : fleet.nodes()) {
    if (node.plan == nullptr) continue;
    ++document.committed.nodes_total;
    const bool committed = codec::raw(document.committed.version) != 0 && node.at(document.committed.version);
    if (committed) ++document.committed.nodes_committed;
  }
  if (const Version version = fleet.in_flight(); codec::raw(version) != 0)
    document.in_flight = in_flight_view(fleet, version);
  document.syncing = syncing_view(fleet);
  return document;
}

NodesDocument nodes_document(const FleetInput& input) {
  const Fleet fleet(input);
  NodesDocument document = head_of_nodes(fleet);
  document.nodes.reserve(fleet.nodes().size());
  for (const FleetNode& node : fleet.nodes()) document.nodes.push_back(fleet.row(node));
  return document;
}

std::optional<NodesDocument> node_document(const FleetInput& input, const std::string& name) {
  const Fleet fleet(input);
  const auto found =
      std::find_if(fleet.nodes().begin(), fleet.nodes().end(), [&](const FleetNode& n) { return n.name == name; });
  if (found == fleet.nodes().end()) return std::nullopt;
  NodesDocument document = head_of_nodes(fleet);
  document.nodes.push_back(fleet.row(*found));
  return document;
}

Health health_of(const FleetInput& input) {
  return health_view(Fleet(input));
}

}  // namespace deltarelay::relay::admin
