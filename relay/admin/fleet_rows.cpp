#include "relay/admin/fleet_rows.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace deltarelay::relay::admin {
namespace {

/// `name` and everything that the plan hangs below it.
std::set<std::string> planned_subtree(const topology::Plan& plan, const std::string& name) {
  std::set<std::string> names{name};
  for (const topology::HostIndex index : plan.by_rank()) {  // parents come before their children
    const topology::PlanNode& node = plan.node(index);
    if (node.parent && names.count(plan.node(*node.parent).name) != 0) names.insert(node.name);
  }
  return names;
}

}  // namespace

const NodeRecord* find_record(const FleetInput& input, const std::string& name) {
  const auto found = input.records.find(name);
  return found == input.records.end() ? nullptr : &found->second;
}

Fleet::Fleet(const FleetInput& input) : input_(input) {
  const topology::Plan& plan = *input.plan;
  std::set<std::string> below;
  if (!input.is_root) below = planned_subtree(plan, input.node);
  for (const topology::HostIndex index : plan.by_rank()) {
    const topology::PlanNode& node = plan.node(index);
    const bool ours = input.is_root || below.count(node.name) != 0 || find_record(input, node.name) != nullptr;
    if (ours) add(node.name, &node);
  }
  for (const auto& [name, record] : input.records)
    if (!name.empty() && plan.find(name) == nullptr) add(name, nullptr);  // the core's own record is nameless at first
  in_flight_ = find_in_flight();
}

void Fleet::add(std::string name, const topology::PlanNode* plan) {
  FleetNode node;
  node.plan = plan;
  node.record = find_record(input_, name);
  const std::string lost = lost_at(name);
  node.reachable = lost.empty();
  if (lost != name) node.lost_with = lost;
  node.name = std::move(name);
  nodes_.push_back(std::move(node));
}

std::string Fleet::lost_at(const std::string& name) const {
  std::string at = name;
  // Records of one moment cannot make a circle, but stale ones might: no way up is longer than there are records.
  for (std::size_t steps = 0; steps <= input_.records.size(); ++steps) {
    if (at == input_.node) return {};
    const NodeRecord* record = find_record(input_, at);
    if (record == nullptr || !record->reachable || record->parent.empty()) return at;
    at = record->parent;
  }
  return name;
}

std::string Fleet::planned_parent(const FleetNode& node) const {
  if (node.plan == nullptr || !node.plan->parent) return {};
  return input_.plan->node(*node.plan->parent).name;
}

Time Fleet::time_of(Instant instant) const {
  return input_.at + std::chrono::round<std::chrono::milliseconds>(instant - input_.now);
}

Version Fleet::find_in_flight() const {
  using Phase = RefitSummary::Phase;
  if (!input_.is_root) {
    const NodeRecord* self = find_record(input_, input_.node);
    return self == nullptr || undoes(*self) ? Version{} : self->receiving;
  }
  const RefitSummary& refit = input_.refit;
  if (refit.phase == Phase::none || refit.phase == Phase::aborted || refit.closed) return Version{};
  if (refit.phase != Phase::committed) return refit.version;
  // A refit stays open for nodes that may never come back; it is under way only while somebody works on it.
  const bool busy =
      std::any_of(nodes_.begin(), nodes_.end(), [&](const FleetNode& n) { return n.receives(refit.version); });
  return busy ? refit.version : Version{};
}

double Fleet::rate_of(const NodeRecord& record) const {
  if (input_.rates == nullptr) return 0;
  if (record.state == NodeState::syncing)
    return std::round(input_.rates->sync_blocks_per_second(record) * input_.mean_block_bytes);
  return codec::raw(record.receiving) == 0 ? 0 : input_.rates->bytes_per_second(record);
}

NodeRow Fleet::row(const FleetNode& node) const {
  NodeRow row;
  row.name = node.name;
  row.role = node.name == input_.plan->root().name ? "root" : "relay";
  row.planned_parent = planned_parent(node);
  row.state = node.reachable ? state_name(NodeState::starting) : "unreachable";
  if (node.plan != nullptr) {
    row.region = node.plan->region;
    row.rank = node.plan->rank;
  }
  if (const NodeRecord* record = node.record; record != nullptr) {
    if (node.plan == nullptr) row.rank = record->rank;
    row.version = record->committed;
    row.receiving_version = undoes(*record) ? Version{} : record->receiving;
    row.undoing_version = undoes(*record) ? record->receiving : Version{};
    row.received_frames = record->frames_received;
    row.applied_frames = record->frames_applied;
    row.total_frames = record->frames_total;
    row.received_bytes = record->received_bytes;
    row.sync_blocks_done = record->sync_blocks_done;
    row.sync_blocks_total = record->sync_blocks_total;
    if (node.reachable) {
      row.state = state_name(record->state);
      row.actual_parent = record->parent;
      row.adopted = !row.actual_parent.empty() && row.actual_parent != row.planned_parent;
    }
  }
  if (input_.rates != nullptr) {
    if (node.reachable && node.record != nullptr) row.rate_bytes_per_second = rate_of(*node.record);
    // What a node that hangs below a lost one does, and since when, nobody knows.
    if (node.lost_with.empty() && node.record != nullptr)
      row.since = time_of(input_.rates->since(*node.record).value_or(input_.now));
  }
  Reason reason;
  if (!node.lost_with.empty()) {
    reason.code = "PARENT_DOWN";
    reason.text = "its parent " + node.lost_with + " is unreachable";
    if (node.record != nullptr && node.record->parent != node.lost_with)
      reason.text = node.lost_with + " above it is unreachable";
  } else if (!node.reachable) {
    reason.code = "NODE_UNREACHABLE";
    reason.text =
        node.record == nullptr ? "not heard from since relayd started on " + input_.node : node.record->reason_text;
  } else {
    reason.code = node.record == nullptr ? "" : node.record->reason_code;
    reason.text = node.record == nullptr ? "" : node.record->reason_text;
  }
  if (!reason.code.empty()) row.reason = std::move(reason);
  return row;
}

}  // namespace deltarelay::relay::admin
