#include "topology/region_tree.hpp"

#include <limits>
#include <tuple>

namespace deltarelay::topology {
namespace {

/// A path from the root's region, as far as it is compared with others.
struct Path {
  bool known = false, done = false, transit = true;
  std::uint64_t rate = 0;
  std::uint32_t hops = 0;
  Duration rtt{};
  double cost = 0;
  std::optional<RegionIndex> parent;
};

/// Wider first, then fewer regions on the way, then nearer, then cheaper.
bool better(const Path& a, const Path& b) {
  if (a.known != b.known) return a.known;
  return std::make_tuple(~a.rate, a.hops, a.rtt, a.cost) < std::make_tuple(~b.rate, b.hops, b.rtt, b.cost);
}

Path extend(const Path& path, RegionIndex at, const Link& link) {
  Path longer = path;
  longer.done = false;
  longer.transit = link.transit;
  longer.rate = std::min(path.rate, link.rate.bytes_per_second);
  longer.hops += 1;
  longer.rtt += link.rtt;
  longer.cost += link.cost;
  longer.parent = at;
  return longer;
}

}  // namespace

RegionTree make_region_tree(const Model& model) {
  const std::size_t count = model.regions.size();
  std::vector<Path> paths(count);
  Path& start = paths.at(raw(model.hosts.at(raw(model.root)).region));
  start.known = true;
  start.rate = std::numeric_limits<std::uint64_t>::max();

  RegionTree tree;
  tree.entries.resize(count);
  for (std::size_t step = 0; step < count; ++step) {
    std::size_t best = count;
    for (std::size_t r = 0; r < count; ++r) {
      if (paths[r].known && !paths[r].done && (best == count || better(paths[r], paths[best]))) best = r;
    }
    if (best == count) break;
    const RegionIndex at{static_cast<std::uint32_t>(best)};
    paths[best].done = true;
    tree.entries[best] = {true, paths[best].parent, Rate{paths[best].rate}};
    tree.order.push_back(at);
    if (!paths[best].transit) continue;
    for (std::size_t r = 0; r < count; ++r) {
      if (paths[r].done) continue;
      const Link* link = model.link_between(at, RegionIndex{static_cast<std::uint32_t>(r)});
      if (link == nullptr) continue;
      const Path longer = extend(paths[best], at, *link);
      if (better(longer, paths[r])) paths[r] = longer;
    }
  }
  return tree;
}

}  // namespace deltarelay::topology
