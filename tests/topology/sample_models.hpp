// Models for the planner's tests: small ones built by hand, and random ones from a seed.
#pragma once

#include <chrono>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "topology/model.hpp"

namespace deltarelay::tests {

inline constexpr std::uint64_t mega = 1'000'000;

inline topology::RegionIndex region_at(std::size_t index) {
  return topology::RegionIndex{static_cast<std::uint32_t>(index)};
}
inline topology::HostIndex host_at(std::size_t index) {
  return topology::HostIndex{static_cast<std::uint32_t>(index)};
}

/// "h" and 7 make "h7"; g++ 12 warns wrongly about `"literal" + std::string`.
inline std::string numbered(std::string_view prefix, std::size_t number) {
  return std::string(prefix).append(std::to_string(number));
}

/// Adds a region and returns its index.
inline topology::RegionIndex add_region(topology::Model& model, const std::string& name, std::uint64_t lan_rate,
                                        topology::Duration rtt = std::chrono::milliseconds(2)) {
  model.regions.push_back({name, topology::Rate{lan_rate}, rtt});
  return region_at(model.regions.size() - 1);
}

/// Adds a host with the region's rate in both directions and returns its index.
inline topology::HostIndex add_host(topology::Model& model, const std::string& name, topology::RegionIndex region,
                                    std::uint32_t max_children = 16) {
  topology::Host host;
  host.name = name;
  host.region = region;
  host.address = {name, 7443};
  host.uplink = host.downlink = model.regions[topology::raw(region)].lan_rate;
  host.max_children = max_children;
  model.hosts.push_back(std::move(host));
  return host_at(model.hosts.size() - 1);
}

inline void add_link(topology::Model& model, std::size_t from, std::size_t to, std::uint64_t rate,
                     topology::Duration rtt = std::chrono::milliseconds(100)) {
  topology::Link link;
  link.from = region_at(from);
  link.to = region_at(to);
  link.rate = topology::Rate{rate};
  link.rtt = rtt;
  model.links.push_back(link);
}

/// One region "a" with a root "r" and hosts "h1", "h2", …; 100 MB/s, 2 ms; encoding and applying cost nothing.
inline topology::Model one_region(std::size_t hosts, std::uint32_t max_children) {
  topology::Model model;
  model.mesh = std::string("m");
  const auto region = add_region(model, "a", 100 * mega);
  model.root = add_host(model, "r", region, max_children);
  for (std::size_t i = 1; i <= hosts; ++i) add_host(model, numbered("h", i), region, max_children);
  model.rates = {topology::Rate{1'000'000'000 * mega}, topology::Rate{1'000'000'000 * mega}};
  model.refit = {10'000 * mega, 1};
  return model;
}

/// Anything that a topology file can say: several regions, one-way and missing links, hosts of all kinds, some without
/// children.
inline topology::Model random_model(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto upto = [&](std::uint64_t most) { return random() % (most + 1); };
  topology::Model model;
  model.mesh = "random";
  model.plan_epoch = upto(9);
  const std::size_t regions = 1 + upto(6), hosts = regions + upto(60);
  for (std::size_t r = 0; r < regions; ++r) {
    add_region(model, numbered("r", r), 1 + upto(3'000 * mega), std::chrono::microseconds(upto(1'000)));
  }
  for (std::size_t a = 0; a < regions; ++a) {
    for (std::size_t b = 0; b < regions; ++b) {
      if (a == b || upto(9) < 5) continue;
      add_link(model, a, b, 1 + upto(upto(1) == 0 ? 10 : 1'000 * mega), std::chrono::milliseconds(upto(300)));
      model.links.back().cost = static_cast<double>(upto(3));
      model.links.back().transit = upto(9) > 0;
    }
  }
  const bool generous = upto(2) > 0;
  for (std::size_t h = 0; h < hosts; ++h) {
    const auto region = region_at(h < regions ? h : upto(regions - 1));
    add_host(model, numbered("h", h), region, static_cast<std::uint32_t>(upto(generous ? 16 : 2)));
    if (generous && model.hosts.back().max_children == 0 && upto(3) > 0) model.hosts.back().max_children = 1;
    if (upto(3) == 0) model.hosts.back().uplink.bytes_per_second = 1 + upto(2'000 * mega);
    if (upto(3) == 0) model.hosts.back().downlink.bytes_per_second = 1 + upto(2'000 * mega);
    if (upto(19) == 0) model.hosts.back().uplink.bytes_per_second = 1;
  }
  model.root = host_at(upto(hosts - 1));
  model.limits.max_candidates = static_cast<std::uint32_t>(2 + upto(8));
  model.refit = {1 + upto(2'000'000 * mega), static_cast<double>(1 + upto(99)) / 100};
  return model;
}

}  // namespace deltarelay::tests
