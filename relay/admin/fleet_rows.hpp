// The nodes that the answering node can speak for, each with its plan, its record, and whether it can be reached.
//
// Layer: relay/admin, internal to the views; pure. Refers to the FleetInput, which outlives it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "relay/admin/fleet_view.hpp"

namespace deltarelay::relay::admin {

/// Puts the blocks of its committed version back, which an aborted refit had changed. The record then still names that
/// refit as what is received.
[[nodiscard]] inline bool undoes(const NodeRecord& record) noexcept {
  return record.state == NodeState::syncing && codec::raw(record.committed) != 0 && codec::raw(record.receiving) != 0;
}

struct FleetNode {
  std::string name;
  const topology::PlanNode* plan = nullptr;  ///< null: not in the plan
  const NodeRecord* record = nullptr;        ///< null: never heard of
  bool reachable = false;
  std::string lost_with;  ///< unreachable because this node above it is; empty: for itself

  [[nodiscard]] bool at(Version version) const {
    return reachable && record != nullptr && record->committed == version && !undoes(*record);
  }
  [[nodiscard]] bool receives(Version version) const {
    return reachable && record != nullptr && codec::raw(version) != 0 && record->receiving == version &&
           !undoes(*record);
  }
};

class Fleet {
 public:
  explicit Fleet(const FleetInput& input);

  /// In plan order, each planned parent before its children; then nodes that are not in the plan.
  [[nodiscard]] const std::vector<FleetNode>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const FleetInput& input() const noexcept { return input_; }
  [[nodiscard]] NodeRow row(const FleetNode& node) const;
  [[nodiscard]] std::string planned_parent(const FleetNode& node) const;
  [[nodiscard]] Time time_of(Instant instant) const;
  /// Bytes that come in per second for the refit, or for the sync; 0 when neither is under way.
  [[nodiscard]] double rate_of(const NodeRecord& record) const;
  /// The refit that nodes are busy with: the root's, or on a relay the one that it receives itself. 0: none.
  [[nodiscard]] Version in_flight() const noexcept { return in_flight_; }

 private:
  void add(std::string name, const topology::PlanNode* plan);
  /// Empty when `name` can be reached; else the node whose loss is why, which may be itself.
  [[nodiscard]] std::string lost_at(const std::string& name) const;
  [[nodiscard]] Version find_in_flight() const;

  const FleetInput& input_;
  std::vector<FleetNode> nodes_;
  Version in_flight_{};
};

[[nodiscard]] const NodeRecord* find_record(const FleetInput& input, const std::string& name);
/// What the summary says of the refit; the phases of `version` on a relay, which has no summary, from its own record.
[[nodiscard]] InFlight in_flight_view(const Fleet& fleet, Version version);
/// Nothing when nobody syncs.
[[nodiscard]] std::optional<Syncing> syncing_view(const Fleet& fleet);
[[nodiscard]] Health health_view(const Fleet& fleet);

}  // namespace deltarelay::relay::admin
