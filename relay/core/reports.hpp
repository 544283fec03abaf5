// The newest record of every node of this node's subtree, itself included, and which of them the parent has not got yet.
//
// Layer: relay/core. Bounded by the number of nodes of the mesh: one record a node, newest wins.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "relay/core/node_record.hpp"

namespace deltarelay::relay {

class Reports {
 public:
  explicit Reports(std::size_t nodes_max) : nodes_max_(nodes_max) {}

  /// Takes over what this node says of itself. True when anything but a counter changed: worth telling at once.
  bool set_self(NodeRecord self);
  /// Records that a child sent. Stale ones and those that speak for this node are dropped. True when a state changed.
  bool merge(const std::vector<NodeRecord>& records);
  /// The link to a child ended: until it speaks again it is unreachable.
  void lost(const std::string& child, const std::string& why);
  /// A new parent knows nothing yet.
  void mark_all();
  /// What the parent lacks, at most `max`; marks them as told.
  [[nodiscard]] std::vector<NodeRecord> take(std::size_t max);
  [[nodiscard]] bool pending() const noexcept { return !untold_.empty(); }

  [[nodiscard]] const NodeRecord& self() const noexcept { return self_; }
  /// All records, self included, by name.
  [[nodiscard]] std::map<std::string, NodeRecord> all() const;
  /// Others only.
  [[nodiscard]] const std::map<std::string, NodeRecord>& others() const noexcept { return others_; }

 private:
  std::size_t nodes_max_;
  NodeRecord self_;
  std::map<std::string, NodeRecord> others_;
  std::set<std::string> untold_;
};

}  // namespace deltarelay::relay
