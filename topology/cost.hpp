// What a refit costs over a plan: predicted times, the bound that no plan can beat, and what limits each region.
//
// Model: a refit is a stream of small frames. A host is done when its first frame has arrived and the rest has followed
// at the rate of the narrowest edge above it. With payload F, frame s, rate B, hop latency L (half a round trip and the
// handling) this gives, for the last host below the root,
//   a chain of N hops         F/B + (N-1) s/B + N L
//   a d-ary tree of H hops    d F/B + (H-1) d s/B + H L
// A payload shorter than a frame counts as one frame.
// The root cannot send what it has not encoded, and a host is not done before its image is written: both are passes
// over the whole checkpoint, overlapping with the transfer. Then votes travel up and the decision down: two ways
// through the tree. Layer: topology. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/model.hpp"
#include "topology/plan.hpp"

namespace deltarelay::topology {

/// Payload of a frame as the encoder cuts it, and what a hop spends on it besides sending: verify, append, hand over.
inline constexpr std::uint64_t frame_bytes = 1024 * 1024;
inline constexpr Duration hop_handling = std::chrono::microseconds{1500};
/// Making the decision durable at the root and the commit at a node.
inline constexpr Duration commit_handling = std::chrono::milliseconds{10};

[[nodiscard]] double seconds_at(std::uint64_t bytes, Rate rate) noexcept;
[[nodiscard]] double seconds(Duration duration) noexcept;
/// From a frame's first byte leaving a host to its being ready to leave the next one.
[[nodiscard]] double hop_seconds(Rate rate, Duration rtt) noexcept;
/// From the arrival of the first frame to that of the last one.
[[nodiscard]] double rest_seconds(std::uint64_t payload_bytes, Rate rate) noexcept;

/// Share of the dense bytes that a refit sends when `change` of the elements changed. Between measured points
/// (0.47, 1.22 and 1.92 % at 1, 3 and 5 %) by straight lines; beyond 5 % a line to 1 at 1, which is above what is sent.
[[nodiscard]] double payload_share(double change) noexcept;
[[nodiscard]] std::uint64_t payload_bytes(const RefitSize& refit) noexcept;

enum class Bound { none, link, uplink, downlink, encode, apply };
[[nodiscard]] const char* name_of(Bound bound) noexcept;

struct NodeTime {
  double arrival_seconds = 0;  ///< of the first frame
  double done_seconds = 0;     ///< received, applied and verified
  Rate rate;                   ///< of the narrowest edge between root and node; 0 for the root
  Bound bound = Bound::none;   ///< what keeps the node from being done earlier
};

struct RegionTime {
  std::string name;
  std::size_t hosts = 0;
  std::string head;
  std::string entered_from;  ///< the host that feeds the head; empty for the root's region
  std::uint32_t depth = 0;   ///< hops from the region's head to its deepest host
  Rate rate;                 ///< the slowest host's
  double done_seconds = 0;
  double bound_seconds = 0;   ///< no plan over these links and hosts is faster
  Bound bound = Bound::none;  ///< of its last host
  std::string limited_by;     ///< the same in words, with the name of the link or host
};

struct Prediction {
  std::uint64_t payload_bytes = 0;
  double total_seconds = 0;   ///< from the first encoded frame to the last node committed
  double commit_seconds = 0;  ///< part of it after the last host is done
  double bound_seconds = 0;
  double efficiency = 0;            ///< bound / total
  double dense_seconds = 0;         ///< the whole checkpoint over the same plan
  std::vector<NodeTime> nodes;      ///< by HostIndex
  std::vector<RegionTime> regions;  ///< by RegionIndex
};

/// Requires a plan made from this model.
[[nodiscard]] Prediction predict(const Model& model, const Plan& plan, const RefitSize& refit);

}  // namespace deltarelay::topology
