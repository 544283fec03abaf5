// What one node says of itself, as it travels up the tree and as the root shows it.
//
// A record is replaced only by a newer one: (attach_sequence, report_sequence) grows over the whole life of a node, restarts
// included, so nothing is counted twice when a subtree moves.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "codec/digest.hpp"
#include "codec/types.hpp"

namespace deltarelay::relay {

using codec::Epoch;
using codec::Sequence;
using codec::StripeId;
using codec::Version;

enum class NodeState : std::uint8_t {
  starting,    ///< image being opened or hashed
  idle,        ///< at `committed`, nothing in flight
  syncing,     ///< block sync: the image is not a version yet, or is being put back to one
  receiving,   ///< frames of `receiving` arrive and are applied
  prepared,    ///< every block of `receiving` applied and verified, log and image durable
  committing,  ///< decision known, ledger being written
  failed,      ///< see reason; retried when `retryable`
};
[[nodiscard]] const char* state_name(NodeState state) noexcept;

/// Above every number of earlier starts of a node, as long as its boot count is: for what grows within one start.
[[nodiscard]] constexpr std::uint64_t first_of_boot(std::uint64_t boot_count) noexcept {
  return boot_count << 20;  // boot counts are milliseconds of a clock, or few
}

struct NodeRecord {
  std::string name;
  std::string parent;  ///< actual parent; empty for the root
  std::uint64_t boot_id = 0;
  std::uint64_t attach_sequence = 0;  ///< first_of_boot() and the attachments since
  std::uint64_t report_sequence = 0;
  std::uint32_t rank = 0;
  NodeState state = NodeState::starting;
  Version committed{};  ///< the version the image wholly holds; 0: none
  codec::Digest image;  ///< of `committed`: a number alone would be believed of a host that holds another root's version
  Version receiving{};  ///< 0: none
  codec::Digest target;  ///< of `receiving`, from its END; zero before
  std::uint64_t frames_received = 0;  ///< of `receiving`; a set, so never past frames_total
  std::uint64_t frames_applied = 0;
  std::uint64_t frames_total = 0;  ///< 0 until END is known
  std::uint64_t received_bytes = 0;  ///< payload bytes of `receiving`
  std::uint64_t sync_blocks_total = 0, sync_blocks_done = 0;
  bool reachable = true;   ///< false: written by the parent that lost it
  bool retryable = true;
  std::string reason_code;  ///< stable word, e.g. DISK_FULL; empty when all is well
  std::string reason_text;

  [[nodiscard]] bool newer_than(const NodeRecord& other) const noexcept {
    return std::tie(attach_sequence, report_sequence) > std::tie(other.attach_sequence, other.report_sequence);
  }
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

}  // namespace deltarelay::relay
