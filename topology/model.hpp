// The fleet as topology.yaml states it: regions, the links between them, hosts, and who feeds whom first.
//
// Layer: topology; values only, no I/O, nothing but the standard library. config/topology_file makes a Model and has
// checked it (names unique, indexes in range); the planner (plan.hpp) and the cost model (cost.hpp) read it.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deltarelay::topology {

using Duration = std::chrono::nanoseconds;

/// Place of a region in Model::regions, in file order.
enum class RegionIndex : std::uint32_t {};
/// Place of a host in Model::hosts, in file order; also its place in Plan::nodes().
enum class HostIndex : std::uint32_t {};

[[nodiscard]] constexpr std::size_t raw(RegionIndex index) noexcept {
  return static_cast<std::size_t>(index);
}
[[nodiscard]] constexpr std::size_t raw(HostIndex index) noexcept {
  return static_cast<std::size_t>(index);
}

/// Payload bytes per second. 0 means "not stated" and is replaced by a default while a topology file is read.
struct Rate {
  std::uint64_t bytes_per_second = 0;
  friend auto operator<=>(const Rate&, const Rate&) = default;
};

/// Where a node listens for its children: a host name or literal address (IPv6 without brackets), and a TCP port.
struct Address {
  std::string host;
  std::uint16_t port = 0;
  /// "host:port", an IPv6 literal in brackets.
  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const Address&, const Address&) = default;
};

struct Region {
  std::string name;
  Rate lan_rate;  ///< what a host can send or receive inside the region unless it says otherwise
  Duration rtt{std::chrono::microseconds{500}};  ///< between two hosts of the region
};

/// A path between two regions. It holds both ways unless the other way is listed too.
struct Link {
  RegionIndex from{}, to{};
  Rate rate;
  Duration rtt{};
  double cost = 0;      ///< any unit, per byte carried; decides between links of the same rate
  bool transit = true;  ///< false: the region at its far end, when entered over it, feeds no other region
};

struct Host {
  std::string name;
  RegionIndex region{};
  Address address;
  Rate uplink, downlink;
  std::uint32_t max_children = 0;
  std::vector<std::pair<std::string, std::string>> labels;  ///< sorted by key
};

struct Limits {
  std::uint32_t max_children = 16;   ///< children of a host that does not say otherwise
  std::uint32_t max_candidates = 8;  ///< length of a node's candidate list, the root included
};

/// The refit that the plan is made for: fan-out trades rate against depth, and which is better depends on the size.
struct RefitSize {
  std::uint64_t checkpoint_bytes = 140'000'000'000;
  double change = 0.03;  ///< share of the elements whose stored bits change; 1 means the dense checkpoint
};

/// What hosts do besides sending: dense bytes per second of one host, all its workers together.
struct HostRates {
  Rate encode{30'000'000'000};
  Rate apply{40'000'000'000};
};

struct Model {
  std::string mesh;
  std::vector<Region> regions;
  std::vector<Link> links;
  std::vector<Host> hosts;
  HostIndex root{};
  std::vector<HostIndex> standby;  ///< may be promoted to root by an operator; first one first
  Limits limits;
  RefitSize refit;
  HostRates rates;
  std::uint64_t plan_epoch = 0;  ///< as the file states it; 0 when it does not

  [[nodiscard]] const Region& region_of(const Host& host) const { return regions.at(raw(host.region)); }
  /// The link that frames from `from` to `to` travel on: the one listed that way, else the one listed the other way;
  /// null when the two regions are not joined, or are one.
  [[nodiscard]] const Link* link_between(RegionIndex from, RegionIndex to) const noexcept;
};

}  // namespace deltarelay::topology
