// The planner: who feeds whom. A pure function of the model, so that every node computes the same plan from the same
// file.
//
// Shape: the regions form a tree over the widest links and each is entered once, at its head (the host with the largest
// uplink). Inside a region one stream rate is chosen (region_shape.hpp) and each host feeds as many children as its
// uplink carries at that rate. Invariants: rank is unique and every parent and every candidate of a node has a lower
// rank than the node, so that attachments can never form a cycle, whoever moves where. Threads: a Plan is immutable.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/model.hpp"

namespace deltarelay::topology {

/// One node of the plan. Indexes are places in Plan::nodes() and in Model::hosts alike.
struct PlanNode {
  std::string name;
  Address address;
  std::string region;
  std::uint32_t rank = 0;   ///< 0 for the root; places in order of distance from it
  std::uint32_t depth = 0;  ///< hops from the root
  bool region_head = false;
  std::optional<HostIndex> parent;    ///< none for the root
  std::vector<HostIndex> children;    ///< in rank order
  /// Where to attach, best first: begins with the parent and ends with the root. The root's own children have it first only.
  std::vector<HostIndex> candidates;
  Rate inbound;                       ///< what the plan lets the edge from the parent carry; 0 for the root
};

/// A place where a node may attach.
struct Candidate {
  std::string name;
  Address address;
  std::uint32_t rank = 0;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

class Plan {
 public:
  /// In the order of Model::hosts.
  [[nodiscard]] const std::vector<PlanNode>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const PlanNode& node(HostIndex index) const { return nodes_.at(raw(index)); }
  /// Null when the plan has no node of that name. Valid as long as the plan.
  [[nodiscard]] const PlanNode* find(std::string_view name) const noexcept;
  [[nodiscard]] const PlanNode& root() const { return node(root_); }
  [[nodiscard]] HostIndex root_index() const noexcept { return root_; }
  /// Empty for the root and for names that the plan lacks.
  [[nodiscard]] std::vector<Candidate> candidates(std::string_view name) const;
  /// Hosts in rank order: the root first, parents before their children.
  [[nodiscard]] const std::vector<HostIndex>& by_rank() const noexcept { return by_rank_; }

  [[nodiscard]] const std::string& mesh() const noexcept { return mesh_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  /// 16 hex digits over mesh and nodes, not over the epoch: one epoch with two digests is a conflict. Guards against
  /// accidents only.
  [[nodiscard]] const std::string& digest() const noexcept { return digest_; }

 private:
  friend class PlanBuilder;
  std::string mesh_;
  std::uint64_t epoch_ = 0;
  std::string digest_;
  HostIndex root_{};
  std::vector<PlanNode> nodes_;
  std::vector<HostIndex> by_rank_;
  std::map<std::string, HostIndex, std::less<>> index_;
};

/// Why there is no plan: what it is about (a region or host), and what would help.
struct PlanProblem {
  enum class Subject { region, host } subject{};
  std::size_t index = 0;  ///< in Model::regions or Model::hosts
  std::string message;
};

/// `plan` is there exactly when `problems` is empty.
struct PlanResult {
  std::optional<Plan> plan;
  std::vector<PlanProblem> problems;
};

/// Computes the plan. Requires a model whose indexes are in range, whose names are unique and whose
/// rates are not 0. Reads no clock, no random
/// source and no file; 5,000 hosts take well under a second.
[[nodiscard]] PlanResult make_plan(const Model& model);

}  // namespace deltarelay::topology
