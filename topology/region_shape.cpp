#include "topology/region_shape.hpp"

#include <algorithm>
#include <set>

#include "topology/cost.hpp"

namespace deltarelay::topology {
namespace {

/// A region with thousands of different uplinks has more rates than are worth trying.
constexpr std::size_t rates_tried_max = 256;
constexpr double time_slack = 1.01;

struct Open {
  HostIndex host{};
  double arrival_seconds = 0;
};

/// How many children at `rate` a host carries. A host that cannot receive at the rate would slow whoever is below it.
std::uint64_t slots(const Host& host, Rate rate) {
  if (host.downlink < rate) return 0;
  return std::min<std::uint64_t>(host.max_children, host.uplink.bytes_per_second / rate.bytes_per_second);
}

/// Hosts with most room first; ties stay in file order.
std::vector<HostIndex> by_room(const Model& model, const std::vector<HostIndex>& hosts, Rate rate) {
  std::vector<std::pair<std::uint64_t, HostIndex>> keyed;
  keyed.reserve(hosts.size());
  for (const HostIndex h : hosts) keyed.emplace_back(slots(model.hosts[raw(h)], rate), h);
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<HostIndex> sorted;
  sorted.reserve(keyed.size());
  for (const auto& entry : keyed) sorted.push_back(entry.second);
  return sorted;
}

/// Hands out children breadth first. Regions beyond come before hosts of the region, because their way is longest; but
/// the last host that still has room keeps some for its own region, or the tree could not grow.
class Filler {
 public:
  Filler(const Model& model, const RegionTask& task, Rate rate)
      : model_(model),
        task_(task),
        rate_(rate),
        pending_(by_room(model, task.hosts, rate)),
        egress_open_(task.egress.size(), true),
        egress_left_(task.egress.size()) {
    shape_.rate = rate;
  }

  std::optional<RegionShape> run() {
    open_.push_back({task_.head, 0});
    for (std::size_t i = 0; i < open_.size(); ++i) fill(i);
    if (egress_left_ > 0 || next_ < pending_.size()) return std::nullopt;
    std::size_t hosts = pending_.size();
    for (const Egress& egress : task_.egress) hosts += egress.hosts;
    if (hosts > 0) shape_.mean_arrival_seconds /= static_cast<double>(hosts);
    return std::move(shape_);
  }

 private:
  void fill(std::size_t place) {
    const HostIndex from = open_[place].host;
    const Host& host = model_.hosts[raw(from)];
    if (from != task_.head && host.downlink < rate_) return;
    uplink_left_ = host.uplink.bytes_per_second;
    children_left_ = host.max_children;
    const bool is_last_open = place + 1 == open_.size() && next_ < pending_.size();
    for (std::size_t e = 0; e < task_.egress.size() && egress_left_ > 0; ++e) {
      const Rate rate = std::min(rate_, task_.egress[e].rate);
      const std::uint64_t kept = is_last_open ? rate_.bytes_per_second : 0;
      if (!egress_open_[e] || children_left_ < (is_last_open ? 2u : 1u)) continue;
      if (uplink_left_ < kept || uplink_left_ - kept < rate.bytes_per_second) continue;
      take(rate);
      egress_open_[e] = false;
      --egress_left_;
      shape_.edges.push_back({from, std::nullopt, e, rate});
      const double arrival = open_[place].arrival_seconds + hop_seconds(rate, task_.egress[e].rtt);
      shape_.mean_arrival_seconds += arrival * static_cast<double>(task_.egress[e].hosts);
      finish(arrival, rate);
    }
    while (next_ < pending_.size() && children_left_ > 0) {
      const HostIndex child = pending_[next_];
      const Rate rate = std::min(rate_, model_.hosts[raw(child)].downlink);
      if (uplink_left_ < rate.bytes_per_second) break;
      take(rate);
      ++next_;
      shape_.edges.push_back({from, child, std::nullopt, rate});
      const double arrival = open_[place].arrival_seconds + hop_seconds(rate, task_.rtt);
      shape_.mean_arrival_seconds += arrival;
      finish(arrival, rate);
      open_.push_back({child, arrival});
    }
  }

  void take(Rate rate) {
    uplink_left_ -= rate.bytes_per_second;
    --children_left_;
  }

  void finish(double arrival_seconds, Rate rate) {
    shape_.done_seconds = std::max(shape_.done_seconds, arrival_seconds + rest_seconds(task_.payload_bytes, rate));
  }

  const Model& model_;
  const RegionTask& task_;
  const Rate rate_;
  const std::vector<HostIndex> pending_;
  std::size_t next_ = 0;
  std::vector<bool> egress_open_;
  std::size_t egress_left_;
  std::vector<Open> open_;
  std::uint64_t uplink_left_ = 0, children_left_ = 0;
  RegionShape shape_;
};

/// Every rate at which some host gains or loses a child, not above what reaches the region.
std::vector<Rate> rates_to_try(const Model& model, const RegionTask& task) {
  const Host& head = model.hosts[raw(task.head)];
  const std::uint64_t cap = std::min(task.inbound, head.uplink).bytes_per_second;
  std::set<std::uint64_t> rates{cap, 1};
  const auto add = [&](std::uint64_t rate) {
    if (rate > 0 && rate <= cap) rates.insert(rate);
  };
  const auto add_shares = [&](std::uint64_t uplink, std::uint64_t children_max) {
    for (std::uint64_t d = 1; d <= std::min<std::uint64_t>(children_max, task.hosts.size() + task.egress.size()); ++d) {
      add(uplink / d);
    }
  };
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  const auto add_host = [&](const Host& host) {
    add(host.downlink.bytes_per_second);
    if (seen.emplace(host.uplink.bytes_per_second, host.max_children).second) {
      add_shares(host.uplink.bytes_per_second, host.max_children);
    }
  };
  add_host(head);
  for (const HostIndex h : task.hosts) add_host(model.hosts[raw(h)]);
  std::uint64_t left = head.uplink.bytes_per_second;
  for (const Egress& egress : task.egress) {
    add(egress.rate.bytes_per_second);
    left -= std::min(left, egress.rate.bytes_per_second);
    add_shares(left, head.max_children);
  }
  std::vector<Rate> all;
  for (const std::uint64_t rate : rates) all.push_back(Rate{rate});
  if (all.size() <= rates_tried_max) return all;
  std::vector<Rate> some;
  for (std::size_t i = 0; i < rates_tried_max; ++i) some.push_back(all[i * (all.size() - 1) / (rates_tried_max - 1)]);
  return some;
}

}  // namespace

std::optional<RegionShape> shape_at(const Model& model, const RegionTask& task, Rate rate) {
  return Filler(model, task, rate).run();
}

std::optional<RegionShape> best_shape(const Model& model, const RegionTask& task) {
  std::vector<RegionShape> shapes;
  double best_seconds = std::numeric_limits<double>::infinity();
  for (const Rate rate : rates_to_try(model, task)) {
    auto shape = shape_at(model, task, rate);
    if (!shape || shape->done_seconds > best_seconds * time_slack) continue;
    best_seconds = std::min(best_seconds, shape->done_seconds);
    shapes.push_back(std::move(*shape));
  }
  std::optional<RegionShape> best;
  for (RegionShape& shape : shapes) {
    if (shape.done_seconds > best_seconds * time_slack) continue;
    const bool nearer = !best || shape.mean_arrival_seconds < best->mean_arrival_seconds;
    const bool faster = best && shape.mean_arrival_seconds == best->mean_arrival_seconds && best->rate < shape.rate;
    if (nearer || faster) best = std::move(shape);
  }
  return best;
}

}  // namespace deltarelay::topology
