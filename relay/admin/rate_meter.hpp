// How fast each node receives and since when it is in its state: what single records cannot say.
//
// Layer: relay/admin; pure, fed with the records about once a second by the shell. One owner, one thread.
// Bounded: `window` samples a node, and nodes that are in no record any more are forgotten.
// Why a window: records travel in bursts of 200 ms, so the difference of two of them says little.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "relay/core/events.hpp"
#include "relay/core/node_record.hpp"

namespace deltarelay::relay::admin {

class RateMeter {
 public:
  /// Takes one sample of every node. `now` must not fall.
  void observe(const std::map<std::string, NodeRecord>& records, Instant now);

  /// Payload bytes per second over the last samples; 0 when the node receives nothing or was seen once only.
  [[nodiscard]] double bytes_per_second(const std::string& node) const;
  /// When the node was first seen in the state it is in (or unreachable), as far as this process saw it.
  [[nodiscard]] std::optional<Instant> since(const std::string& node) const;

 private:
  static constexpr std::size_t window = 6;
  struct Sample {
    Instant at;
    std::uint64_t received_bytes = 0;
  };
  struct Seen {
    Version receiving{};
    NodeState state{};
    bool reachable = true;
    Instant since;
    std::deque<Sample> samples;  // of one refit only: the counter starts again with the next
  };
  std::map<std::string, Seen> seen_;
};

}  // namespace deltarelay::relay::admin
