// What the node's log holds, in memory: per refit the size of each record, whether END and the decision are there.
//
// Layer: relay/core; no I/O. The store holds the bytes; this decides who may be sent what. One stripe a refit for now.
// A refit is known by its version and the epoch of its BEGIN: a root that lost its ledger may use a number again, an
// epoch never.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "relay/core/events.hpp"

namespace deltarelay::relay {

struct RefitEntry {
  Version version{}, base{};
  Epoch begun{};                        ///< of BEGIN
  Epoch epoch{};                        ///< of the newest record
  codec::Digest base_image;
  std::vector<std::uint32_t> record_bytes;  ///< by sequence
  codec::RecordPtr end_record;          ///< null until END
  codec::Digest target;                 ///< of the image that it leads to; zero until END
  std::optional<bool> decision;         ///< true: commit
  std::uint64_t frame_count = 0, payload_bytes = 0;

  [[nodiscard]] Sequence next_sequence() const noexcept { return Sequence{record_bytes.size()}; }
  /// It changes nothing: it was begun and aborted to say that older undecided refits from its base are.
  [[nodiscard]] bool is_void() const noexcept { return decision == false && record_bytes.size() == 2; }
};

class LogIndex {
 public:
  /// REQUIRES that the record continues its refit, or is the BEGIN of a new one. Errors: the BEGIN or END is malformed;
  /// nothing was appended then.
  [[nodiscard]] codec::Result<void> append(const codec::RecordPtr& record);
  [[nodiscard]] const RefitEntry* find(Version version) const;
  /// The first refit after `version` that a child needs: not aborted, or void. Null when there is none yet.
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
