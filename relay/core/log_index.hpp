// What the node's log holds, in memory: per refit the size of each record, whether END and the decision are there.
//
// Layer: relay/core; no I/O. The store holds the bytes; this decides who may be sent what. One stripe a refit for now.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "relay/core/events.hpp"

namespace deltarelay::relay {

struct RefitEntry {
  Version version{}, base{};
  Epoch epoch{};                        ///< of the newest record
  codec::Digest base_image;
  std::vector<std::uint32_t> record_bytes;  ///< by sequence
  codec::RecordPtr end_record;          ///< null until END
  std::optional<bool> decision;         ///< true: commit
  std::uint64_t frame_count = 0, payload_bytes = 0;

  [[nodiscard]] Sequence next_sequence() const noexcept { return Sequence{record_bytes.size()}; }
};

class LogIndex {
 public:
  /// REQUIRES that the record continues its refit, or is the BEGIN of a new one. Errors: the BEGIN or END is malformed.
  [[nodiscard]] codec::Result<void> append(const codec::RecordPtr& record);
  [[nodiscard]] const RefitEntry* find(Version version) const;
  /// The first refit after `version` that was not aborted; null when there is none yet.
  [[nodiscard]] const RefitEntry* following(Version version) const;
  /// The refit that leads from `base` and was committed, or is undecided.
  [[nodiscard]] const RefitEntry* from_base(Version base) const;
  [[nodiscard]] Version newest() const;
  void drop(Version version) { refits_.erase(version); }
  [[nodiscard]] const std::map<Version, RefitEntry>& refits() const noexcept { return refits_; }

 private:
  std::map<Version, RefitEntry> refits_;
};

}  // namespace deltarelay::relay
