#include "relay/core/child_session.hpp"

#include <algorithm>

namespace deltarelay::relay {

void ChildSession::stream_from(Version committed, const ResumePoint& point, const LogIndex& log, Actions& out) {
  phase_ = Phase::streaming;
  done_through_ = committed;
  const RefitEntry* refit = point.next.version > committed ? log.find(point.next.version) : nullptr;
  position_ = refit != nullptr && refit->begun == point.begun ? point.next : LogPosition{};
  wanted_.clear();
  pump(log, out);
}

void ChildSession::rewind(LogPosition position, const LogIndex& log, Actions& out) {
  if (phase_ != Phase::streaming) return;
  const RefitEntry* refit = log.find(position.version);
  if (refit == nullptr || position.sequence > refit->next_sequence()) return;
  position_ = position;
  pump(log, out);
}

void ChildSession::pump(const LogIndex& log, Actions& out) {
  if (phase_ != Phase::streaming) return;
  while (unsent_bytes_ < window_bytes_) {
    if (codec::raw(position_.version) == 0) {
      const RefitEntry* refit = log.following(done_through_);
      if (refit == nullptr) return;
      position_ = LogPosition{refit->version, Sequence{}};
    }
    const RefitEntry* refit = log.find(position_.version);
    if (refit == nullptr) {  // dropped under the cursor: go on with what follows
      done_through_ = position_.version;
      position_ = LogPosition{};
      continue;
    }
    if (position_.sequence >= refit->next_sequence()) {
      if (!refit->decision) return;
      done_through_ = refit->version;
      position_ = LogPosition{};
      continue;
    }
    out.push_back(SendRecord{link_, position_});
    unsent_bytes_ += refit->record_bytes[codec::raw(position_.sequence)];
    position_.sequence = codec::next(position_.sequence);
  }
}

void ChildSession::sent(std::uint64_t bytes, const LogIndex& log, Actions& out) {
  unsent_bytes_ -= std::min(bytes, unsent_bytes_);
  pump(log, out);
}

void ChildSession::want_blocks(const std::vector<std::uint64_t>& ordinals) {
  for (std::uint64_t ordinal : ordinals)
    if (wanted_.size() < wanted_max) wanted_.push_back(ordinal);
}

}  // namespace deltarelay::relay
