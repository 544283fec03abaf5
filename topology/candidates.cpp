#include "topology/candidates.hpp"

#include <algorithm>

namespace deltarelay::topology {
namespace {

/// Beside parent, grandparent, standby, head and root: enough to spread over, few enough to be through soon.
constexpr std::size_t peers_max = 3;

class List {
 public:
  List(const CandidateTask& task, HostIndex self) : task_(task), self_(self) {}

  bool add(HostIndex host) {
    const PlanNode& node = task_.nodes[raw(host)];
    if (node.rank >= task_.nodes[raw(self_)].rank || contains(host)) return false;
    out_.push_back(host);
    return true;
  }

  /// The root is everybody's last resort and never cut off.
  std::vector<HostIndex> finish() {
    const HostIndex root = task_.model.root;
    out_.erase(std::remove(out_.begin() + 1, out_.end(), root), out_.end());
    const std::size_t room = std::max<std::size_t>(task_.model.limits.max_candidates, 2) - 1;
    if (out_.size() > room) out_.resize(room);
    if (!contains(root)) out_.push_back(root);
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool contains(HostIndex host) const { return std::find(out_.begin(), out_.end(), host) != out_.end(); }

  const CandidateTask& task_;
  HostIndex self_;
  std::vector<HostIndex> out_;
};

/// Children of `of` in `region`, beginning at a place that depends on the node that asks.
void add_peers(const CandidateTask& task, List& list, const PlanNode& of, RegionIndex region, std::size_t first) {
  std::size_t added = 0;
  for (std::size_t i = 0; i < of.children.size() && added < peers_max; ++i) {
    const HostIndex peer = of.children[(first + i) % of.children.size()];
    const Host& host = task.model.hosts[raw(peer)];
    if (host.region == region && host.max_children > 0 && list.add(peer)) ++added;
  }
}

}  // namespace

std::vector<HostIndex> make_candidates(const CandidateTask& task, HostIndex index) {
  const PlanNode& node = task.nodes[raw(index)];
  if (!node.parent) return {};
  const RegionIndex region = task.model.hosts[raw(index)].region;
  const PlanNode& parent = task.nodes[raw(*node.parent)];
  const RegionIndex parent_region = task.model.hosts[raw(*node.parent)].region;
  const auto place = std::find(parent.children.begin(), parent.children.end(), index) - parent.children.begin();
  const std::size_t first = static_cast<std::size_t>(place);

  List list(task, index);
  list.add(*node.parent);
  if (parent_region != region) {
    // A head: up the way that the frames come, then anybody in the region that feeds this one.
    for (auto up = parent.parent; up; up = task.nodes[raw(*up)].parent) list.add(*up);
    add_peers(task, list, parent, parent_region, first);
    return list.finish();
  }
  const bool grandparent_inside = parent.parent && task.model.hosts[raw(*parent.parent)].region == region;
  if (grandparent_inside) {
    list.add(*parent.parent);
    add_peers(task, list, task.nodes[raw(*parent.parent)], region, first);
  }
  if (task.standbys[raw(region)]) list.add(*task.standbys[raw(region)]);
  if (!grandparent_inside) add_peers(task, list, parent, region, first);
  const HostIndex head = task.heads[raw(region)];
  list.add(head);
  if (task.nodes[raw(head)].parent) list.add(*task.nodes[raw(head)].parent);
  return list.finish();
}

}  // namespace deltarelay::topology
