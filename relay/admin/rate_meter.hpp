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

  // `now_known` is the newest record of a node: what changed since the last sample must not be given the old numbers.
  /// Payload bytes per second over the last samples; 0 when the node receives nothing or was seen once only.
  [[nodiscard]] double bytes_per_second(const NodeRecord& now_known) const;
  /// Blocks of a sync per second over the last samples.
  [[nodiscard]] double sync_blocks_per_second(const NodeRecord& now_known) const;
  /// When the node was first seen in the state it is in (or unreachable), as far as this process saw it. Nothing when
  /// no sample has it in this state yet: then it is so since a moment ago.
  [[nodiscard]] std::optional<Instant> since(const NodeRecord& now_known) const;

 private:
  static constexpr std::size_t window = 6;
  struct Sample {
    Instant at;
    std::uint64_t received_bytes = 0;
    std::uint64_t sync_blocks_done = 0;
  };
  struct Seen {
    Version receiving{};
    std::uint64_t sync_blocks_total = 0;
    NodeState state{};
    bool reachable = true;
    Instant since;
    std::deque<Sample> samples;  // of one refit or sync only: the counters start again with the next
  };
  /// Null when the newest sample is of another state, refit or sync.
  [[nodiscard]] const Seen* find(const NodeRecord& now_known) const;
  std::map<std::string, Seen> seen_;
};

}  // namespace deltarelay::relay::admin
