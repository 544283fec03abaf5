#include "topology/plan.hpp"

#include <algorithm>
#include <cassert>

#include "topology/candidates.hpp"
#include "topology/cost.hpp"
#include "topology/region_shape.hpp"
#include "topology/region_tree.hpp"

namespace deltarelay::topology {
namespace {

/// FNV-1a, 64 bits: small, and enough to tell two plans apart.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(0xff);  // not a byte of UTF-8: "ab" + "c" differs from "a" + "bc"
  }
  void add(std::uint64_t number) { add(std::to_string(number)); }

  [[nodiscard]] std::string hex() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out(16, '0');
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = digits[(state_ >> (60 - 4 * i)) & 0xf];
    return out;
  }

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3ull; }
  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

/// The host that takes in most of what the link brings and passes most of it on.
HostIndex choose_head(const Model& model, const std::vector<HostIndex>& hosts, Rate entry) {
  assert(!hosts.empty());
  const auto key = [&](HostIndex index) {
    const Host& host = model.hosts[raw(index)];
    const bool may_forward = host.max_children > 0 || hosts.size() == 1;
    return std::make_tuple(may_forward, std::min(host.downlink, entry), host.uplink, host.max_children);
  };
  HostIndex best = hosts.front();
  for (const HostIndex index : hosts) {
    if (key(best) < key(index)) best = index;
  }
  return best;
}

}  // namespace

/// Fills a Plan region by region, from the root's outwards; then ranks, candidates and the digest.
class PlanBuilder {
 public:
  explicit PlanBuilder(const Model& model)
      : model_(model),
        members_(model.regions.size()),
        heads_(model.regions.size()),
        hosts_behind_(model.regions.size()) {
    plan_.mesh_ = model.mesh;
    plan_.epoch_ = model.plan_epoch;
    plan_.root_ = model.root;
    for (std::size_t h = 0; h < model.hosts.size(); ++h) {
      const Host& host = model.hosts[h];
      const HostIndex index{static_cast<std::uint32_t>(h)};
      PlanNode node;
      node.name = host.name;
      node.address = host.address;
      node.region = model.region_of(host).name;
      plan_.nodes_.push_back(std::move(node));
      plan_.index_.emplace(host.name, index);
      members_[raw(host.region)].push_back(index);
    }
  }

  PlanResult build() {
    const RegionTree tree = make_region_tree(model_);
    find_heads(tree);
    if (!problems_.empty()) return {std::nullopt, std::move(problems_)};
    count_hosts_behind(tree);
    for (const RegionIndex region : tree.order) place_region(tree, region);
    if (!problems_.empty()) return {std::nullopt, std::move(problems_)};
    assign_ranks();
    assign_candidates();
    assign_digest();
    return {std::move(plan_), {}};
  }

 private:
  void find_heads(const RegionTree& tree) {
    for (std::size_t r = 0; r < members_.size(); ++r) {
      const RegionEntry& entry = tree.entries[r];
      const Region& region = model_.regions[r];
      if (members_[r].empty()) {
        problems_.push_back({PlanProblem::Subject::region, r, "region \"" + region.name + "\" has no hosts"});
        continue;
      }
      if (!entry.reached) {
        problems_.push_back({PlanProblem::Subject::region, r,
                             "no path of links leads from the root's region to region \"" + region.name + "\""});
        continue;
      }
      heads_[r] = entry.parent ? choose_head(model_, members_[r], entry.path_rate) : model_.root;
      plan_.nodes_[raw(heads_[r])].region_head = true;
    }
  }

  /// Hosts of each region and of all regions that it feeds: the order has feeders first, so this goes against it.
  void count_hosts_behind(const RegionTree& tree) {
    for (std::size_t r = 0; r < members_.size(); ++r) hosts_behind_[r] = members_[r].size();
    for (auto region = tree.order.rbegin(); region != tree.order.rend(); ++region) {
      const auto parent = tree.entries[raw(*region)].parent;
      if (parent) hosts_behind_[raw(*parent)] += hosts_behind_[raw(*region)];
    }
  }

  void place_region(const RegionTree& tree, RegionIndex region) {
    RegionTask task;
    task.head = heads_[raw(region)];
    // The region that feeds this one could not be laid out, which is already a problem: nothing comes in to share out
    // here.
    if (tree.entries[raw(region)].parent && !node(task.head).parent) return;
    task.rtt = model_.regions[raw(region)].rtt;
    task.payload_bytes = payload_bytes(model_.refit);
    if (tree.entries[raw(region)].parent) task.inbound = node(task.head).inbound;
    for (const HostIndex host : members_[raw(region)]) {
      if (host != task.head) task.hosts.push_back(host);
    }
    for (const RegionIndex beyond : tree.order) {
      if (tree.entries[raw(beyond)].parent != region) continue;
      const Link* link = model_.link_between(region, beyond);
      assert(link != nullptr);
      const Host& head = model_.hosts[raw(heads_[raw(beyond)])];
      task.egress.push_back({beyond, std::min(link->rate, head.downlink), link->rtt, hosts_behind_[raw(beyond)]});
    }
    if (task.hosts.empty() && task.egress.empty()) return;
    const auto shape = best_shape(model_, task);
    if (!shape) {
      problems_.push_back({PlanProblem::Subject::region, raw(region), why_not_fed(task)});
      return;
    }
    for (const Edge& edge : shape->edges) {
      attach(edge.from, edge.host ? *edge.host : heads_[raw(task.egress[*edge.egress].region)], edge.rate);
    }
  }

  [[nodiscard]] std::string why_not_fed(const RegionTask& task) const {
    std::uint64_t room = model_.hosts[raw(task.head)].max_children;
    for (const HostIndex host : task.hosts) room += model_.hosts[raw(host)].max_children;
    const std::size_t needed = task.hosts.size() + task.egress.size();
    const Host& head = model_.hosts[raw(task.head)];
    const std::string region = "region \"" + model_.region_of(head).name + "\"";
    if (room >= needed) {
      return "the uplinks of " + region + " are too narrow to feed " + std::to_string(needed) + " hosts from head \"" +
             head.name + "\" at any rate; raise them";
    }
    return "the hosts of " + region + " may have " + std::to_string(room) + " children together, and " +
           std::to_string(needed) + " have to be fed from head \"" + head.name + "\"; raise max_children";
  }

  void attach(HostIndex parent, HostIndex child, Rate rate) {
    node(child).parent = parent;
    node(child).inbound = rate;
    node(parent).children.push_back(child);
  }

  /// Breadth first over the whole tree: a parent's rank is lower than its children's.
  void assign_ranks() {
    plan_.by_rank_.push_back(plan_.root_);
    for (std::size_t i = 0; i < plan_.by_rank_.size(); ++i) {
      PlanNode& at = node(plan_.by_rank_[i]);
      at.rank = static_cast<std::uint32_t>(i);
      for (const HostIndex child : at.children) {
        node(child).depth = at.depth + 1;
        plan_.by_rank_.push_back(child);
      }
    }
    assert(plan_.by_rank_.size() == plan_.nodes_.size());
  }

  void assign_candidates() {
    CandidateTask task{model_, plan_.nodes_, heads_, std::vector<std::optional<HostIndex>>(model_.regions.size())};
    for (const HostIndex index : plan_.by_rank_) {
      auto& standby = task.standbys[raw(model_.hosts[raw(index)].region)];
      const bool able = model_.hosts[raw(index)].max_children > 0;
      if (!standby && able && !node(index).region_head) standby = index;
    }
    for (const HostIndex index : plan_.by_rank_) node(index).candidates = make_candidates(task, index);
  }

  void assign_digest() {
    Fingerprint print;
    print.add(plan_.mesh_);
    for (const HostIndex index : plan_.by_rank_) {
      const PlanNode& at = node(index);
      print.add(at.name);
      print.add(at.address.text());
      print.add(at.region);
      print.add(at.inbound.bytes_per_second);
      for (const HostIndex candidate : at.candidates) print.add(node(candidate).name);
      print.add(at.candidates.size());
    }
    plan_.digest_ = print.hex();
  }

  PlanNode& node(HostIndex index) { return plan_.nodes_[raw(index)]; }

  const Model& model_;
  std::vector<std::vector<HostIndex>> members_;  // by RegionIndex
  std::vector<HostIndex> heads_;                 // by RegionIndex
  std::vector<std::size_t> hosts_behind_;        // by RegionIndex
  std::vector<PlanProblem> problems_;
  Plan plan_;
};

const PlanNode* Plan::find(std::string_view name) const noexcept {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &nodes_[raw(found->second)];
}

std::vector<Candidate> Plan::candidates(std::string_view name) const {
  std::vector<Candidate> out;
  const PlanNode* self = find(name);
  if (self == nullptr) return out;
  for (const HostIndex index : self->candidates) {
    const PlanNode& at = node(index);
    out.push_back({at.name, at.address, at.rank});
  }
  return out;
}

PlanResult make_plan(const Model& model) {
  return PlanBuilder(model).build();
}

}  // namespace deltarelay::topology
