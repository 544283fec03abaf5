#include "relay/core/log_index.hpp"

#include <cassert>

#include "codec/payloads.hpp"

namespace deltarelay::relay {

codec::Result<void> LogIndex::append(const codec::RecordPtr& record) {
  const codec::RecordHeader& header = record->header;
  auto found = refits_.find(header.version);
  if (found == refits_.end()) {
    if (header.type != codec::RecordType::begin || codec::raw(header.sequence) != 0)
      return codec::errc::malformed_payload;
    auto begin = codec::BeginPayload::decode(record->payload());
    if (!begin) return begin.error();
    // One refit at a time leads from a base: an older one that is undecided here was aborted, and its ABORT was lost
    // with the tail of a killed root's log.
    for (auto& [version, older] : refits_)
      if (version < header.version && older.base == begin->base && !older.decision) older.decision = false;
    RefitEntry entry;
    entry.version = header.version;
    entry.begun = header.epoch;
    entry.base = begin->base;
    entry.base_image = begin->base_image;
    found = refits_.emplace(header.version, std::move(entry)).first;
  }
  RefitEntry& entry = found->second;
  assert(header.sequence == entry.next_sequence());
  if (header.type == codec::RecordType::end) {
    auto end = codec::EndPayload::decode(record->payload());
    if (!end) return end.error();
    entry.end_record = record;
    entry.target = end->image;
  }
  if (header.type == codec::RecordType::frame) ++entry.frame_count;
  if (header.type == codec::RecordType::commit) entry.decision = true;
  if (header.type == codec::RecordType::abort) entry.decision = false;
  entry.epoch = header.epoch;
  entry.payload_bytes += header.payload_bytes;
  entry.record_bytes.push_back(static_cast<std::uint32_t>(record->bytes.size()));
  return {};
}

const RefitEntry* LogIndex::find(Version version) const {
  auto found = refits_.find(version);
  return found == refits_.end() ? nullptr : &found->second;
}

const RefitEntry* LogIndex::following(Version version) const {
  for (auto it = refits_.upper_bound(version); it != refits_.end(); ++it)
    if (it->second.decision != false || it->second.is_void()) return &it->second;
  return nullptr;
}

const RefitEntry* LogIndex::from_base(Version base) const {
  for (const auto& [version, entry] : refits_)
    if (entry.base == base && version > base && entry.decision != false) return &entry;
  return nullptr;
}

Version LogIndex::newest() const {
  return refits_.empty() ? Version{} : refits_.rbegin()->first;
}

}  // namespace deltarelay::relay
