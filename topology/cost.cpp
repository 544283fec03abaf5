#include "topology/cost.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "topology/region_tree.hpp"

namespace deltarelay::topology {
namespace {

struct Work {
  double encode_seconds = 0, apply_seconds = 0;
};

Work passes(const Model& model, const RefitSize& refit) {
  return {seconds_at(refit.checkpoint_bytes, model.rates.encode),
          seconds_at(refit.checkpoint_bytes, model.rates.apply)};
}

/// Which of the things on the edge into `node` is as narrow as the edge itself.
Bound edge_bound(const Model& model, const PlanNode& node, const Host& host, const Host& parent) {
  if (host.region != parent.region) {
    const Link* link = model.link_between(parent.region, host.region);
    if (link != nullptr && link->rate <= node.inbound) return Bound::link;
  }
  return host.downlink <= node.inbound ? Bound::downlink : Bound::uplink;
}

NodeTime time_of(const Model& model, const Plan& plan, HostIndex index, const std::vector<NodeTime>& above,
                 const Work& work, std::uint64_t payload) {
  const PlanNode& node = plan.node(index);
  if (!node.parent) return {0, work.encode_seconds, Rate{}, Bound::encode};
  const Host& host = model.hosts[raw(index)];
  const Host& parent = model.hosts[raw(*node.parent)];
  const NodeTime& up = above[raw(*node.parent)];
  NodeTime time;
  Duration rtt = model.region_of(host).rtt;
  if (host.region != parent.region) {
    if (const Link* link = model.link_between(parent.region, host.region)) rtt = link->rtt;
  }
  const bool narrower = up.rate.bytes_per_second == 0 || node.inbound < up.rate;
  time.rate = narrower ? node.inbound : up.rate;
  time.arrival_seconds = up.arrival_seconds + hop_seconds(node.inbound, rtt);
  const double transfer = rest_seconds(payload, time.rate);
  const double slowest = std::max({transfer, work.encode_seconds, work.apply_seconds});
  time.done_seconds = time.arrival_seconds + slowest;
  if (slowest > transfer) {
    time.bound = work.encode_seconds >= work.apply_seconds ? Bound::encode : Bound::apply;
  } else {
    const bool inherited = !narrower && up.bound != Bound::encode && up.bound != Bound::apply;
    time.bound = inherited ? up.bound : edge_bound(model, node, host, parent);
  }
  return time;
}

/// The way to the node that is slowest to hear, there and back, and what is made durable on the way.
double commit_seconds(const Model& model, const Plan& plan) {
  std::vector<double> one_way(plan.nodes().size(), 0);
  double longest = 0;
  for (const HostIndex index : plan.by_rank()) {
    const PlanNode& node = plan.node(index);
    if (!node.parent) continue;
    const Host& host = model.hosts[raw(index)];
    const Host& parent = model.hosts[raw(*node.parent)];
    const Link* link = model.link_between(parent.region, host.region);
    const Duration rtt = host.region != parent.region && link != nullptr ? link->rtt : model.region_of(host).rtt;
    one_way[raw(index)] = one_way[raw(*node.parent)] + seconds(rtt) / 2;
    longest = std::max(longest, one_way[raw(index)]);
  }
  return 2 * longest + 2 * seconds(commit_handling);
}

std::string limit_text(const Plan& plan, const std::vector<NodeTime>& times, HostIndex slowest) {
  const Bound bound = times[raw(slowest)].bound;
  // The narrow edge may be further up: go to the first node that has this rate.
  HostIndex at = slowest;
  while (plan.node(at).parent && times[raw(*plan.node(at).parent)].rate == times[raw(at)].rate)
    at = *plan.node(at).parent;
  const PlanNode& node = plan.node(at);
  if (bound == Bound::encode) return "encoding at the root";
  if (bound == Bound::apply) return "writing the image";
  if (!node.parent) return "nothing";
  const PlanNode& parent = plan.node(*node.parent);
  if (bound == Bound::link) return "link " + parent.region + " to " + node.region;
  if (bound == Bound::downlink) return "downlink of " + node.name;
  const std::size_t fan_out = parent.children.size();
  return "uplink of " + parent.name + (fan_out > 1 ? " (" + std::to_string(fan_out) + " children)" : "");
}

/// No plan moves the payload into a region faster than its widest path, nor past the hosts' own passes over the image.
double region_bound(const Model& model, const RegionEntry& entry, const Work& work, std::uint64_t payload,
                    bool has_receiver) {
  if (!has_receiver) return work.encode_seconds;
  const Rate root_uplink = model.hosts[raw(model.root)].uplink;
  const double transfer = seconds_at(payload, std::min(entry.path_rate, root_uplink));
  return std::max({transfer, work.encode_seconds, work.apply_seconds});
}

RegionTime region_time(const Model& model, const Plan& plan, RegionIndex region, const std::vector<NodeTime>& times) {
  RegionTime out;
  out.name = model.regions[raw(region)].name;
  std::optional<HostIndex> slowest;
  std::uint32_t head_depth = 0, deepest = 0;
  for (const HostIndex index : plan.by_rank()) {
    if (model.hosts[raw(index)].region != region) continue;
    const PlanNode& node = plan.node(index);
    ++out.hosts;
    if (node.region_head) {
      out.head = node.name;
      head_depth = node.depth;
      if (node.parent) out.entered_from = plan.node(*node.parent).name;
    }
    deepest = std::max(deepest, node.depth);
    const NodeTime& time = times[raw(index)];
    if (node.parent && (out.rate.bytes_per_second == 0 || time.rate < out.rate)) out.rate = time.rate;
    if (!slowest || time.done_seconds > times[raw(*slowest)].done_seconds) slowest = index;
  }
  out.depth = deepest - head_depth;
  if (!slowest) return out;
  out.done_seconds = times[raw(*slowest)].done_seconds;
  out.bound = times[raw(*slowest)].bound;
  out.limited_by = limit_text(plan, times, *slowest);
  return out;
}

}  // namespace

double seconds(Duration duration) noexcept {
  return std::chrono::duration<double>(duration).count();
}

double seconds_at(std::uint64_t bytes, Rate rate) noexcept {
  return static_cast<double>(bytes) / static_cast<double>(rate.bytes_per_second);
}

double hop_seconds(Rate rate, Duration rtt) noexcept {
  return seconds_at(frame_bytes, rate) + seconds(hop_handling) + seconds(rtt) / 2;
}

double rest_seconds(std::uint64_t payload_bytes, Rate rate) noexcept {
  return seconds_at(payload_bytes - std::min(payload_bytes, frame_bytes), rate);
}

double payload_share(double change) noexcept {
  struct Point {
    double change, share;
  };
  constexpr std::array<Point, 5> points{{{0, 0}, {0.01, 0.0047}, {0.03, 0.0122}, {0.05, 0.0192}, {1, 1}}};
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (change > points[i].change) continue;
    const double part = (change - points[i - 1].change) / (points[i].change - points[i - 1].change);
    return points[i - 1].share + part * (points[i].share - points[i - 1].share);
  }
  return 1;
}

std::uint64_t payload_bytes(const RefitSize& refit) noexcept {
  return static_cast<std::uint64_t>(static_cast<double>(refit.checkpoint_bytes) * payload_share(refit.change));
}

const char* name_of(Bound bound) noexcept {
  switch (bound) {
    case Bound::none:
      return "none";
    case Bound::link:
      return "link";
    case Bound::uplink:
      return "uplink";
    case Bound::downlink:
      return "downlink";
    case Bound::encode:
      return "encode";
    case Bound::apply:
      return "apply";
  }
  return "unknown";
}

Prediction predict(const Model& model, const Plan& plan, const RefitSize& refit) {
  Prediction out;
  out.payload_bytes = payload_bytes(refit);
  const Work work = passes(model, refit);
  out.nodes.resize(plan.nodes().size());
  for (const HostIndex index : plan.by_rank()) {
    out.nodes[raw(index)] = time_of(model, plan, index, out.nodes, work, out.payload_bytes);
  }
  const RegionTree tree = make_region_tree(model);
  for (std::size_t r = 0; r < model.regions.size(); ++r) {
    RegionTime region = region_time(model, plan, RegionIndex{static_cast<std::uint32_t>(r)}, out.nodes);
    const bool only_root = region.hosts == 1 && region.head == plan.root().name;
    region.bound_seconds =
        region_bound(model, tree.entries[r], work, out.payload_bytes, !only_root && region.hosts > 0);
    out.total_seconds = std::max(out.total_seconds, region.done_seconds);
    out.bound_seconds = std::max(out.bound_seconds, region.bound_seconds);
    out.regions.push_back(std::move(region));
  }
  out.commit_seconds = commit_seconds(model, plan);
  out.total_seconds += out.commit_seconds;
  out.efficiency = out.total_seconds > 0 ? out.bound_seconds / out.total_seconds : 1;
  if (refit.change < 1) {
    out.dense_seconds = predict(model, plan, {refit.checkpoint_bytes, 1}).total_seconds;
  } else {
    out.dense_seconds = out.total_seconds;
  }
  return out;
}

}  // namespace deltarelay::topology
