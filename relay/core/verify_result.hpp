// What one node found when it compared its image with its ledger, as it travels up the tree and as operators see it.
//
// A result is replaced only by one with a higher serial, which grows over the whole life of a node, restarts included:
// a node that changes its parent in the middle sends the same news on two ways.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/types.hpp"

namespace deltarelay::relay {

enum class VerifyState : std::uint8_t {
  asked,    ///< never sent: a node that was asked and has said nothing yet
  waiting,  ///< a write is in progress or the image is not open; begins when that is over
  reading,
  ok,       ///< final from here on: the image is what the ledger states
  damaged,  ///< it is not
  failed,   ///< image or ledger could not be read
  busy,     ///< it has waited as long as it may
};

/// One damaged block, as operators look for it.
struct DamagedBlock {
  std::string tensor;
  std::uint64_t block = 0;
  friend bool operator==(const DamagedBlock&, const DamagedBlock&) = default;
};

struct VerifyResult {
  std::string node;
  std::uint64_t serial = 0;  ///< boot count in the high half, news of that boot in the low half
  VerifyState state = VerifyState::asked;
  codec::Version version{};  ///< that the ledger states
  std::uint64_t checked_bytes = 0, total_bytes = 0;
  std::uint64_t damaged_blocks = 0;
  std::uint64_t milliseconds = 0;     ///< that reading took
  std::vector<DamagedBlock> damaged;  ///< the first damaged_named_max of them
  std::string text;                   ///< what is wrong, or what is waited for

  [[nodiscard]] bool final() const noexcept { return state >= VerifyState::ok; }
  friend bool operator==(const VerifyResult&, const VerifyResult&) = default;
};

inline constexpr std::size_t damaged_named_max = 8;

}  // namespace deltarelay::relay
