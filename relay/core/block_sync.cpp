#include "relay/core/block_sync.hpp"

#include <algorithm>
#include <utility>

namespace deltarelay::relay {
namespace {
constexpr std::size_t outstanding_max = 64;
constexpr std::size_t request_min = 16;  // ask in batches, not for single blocks
constexpr Duration retry_after = std::chrono::seconds(1);

codec::RecordPtr parse_record(const std::vector<std::byte>& bytes) {
  auto header = codec::decode_record_header(bytes);
  if (!header || bytes.size() != codec::record_header_bytes + header->payload_bytes) return nullptr;
  auto record = std::make_shared<codec::Record>();
  record->header = *header;
  record->bytes = bytes;
  return record;
}
}  // namespace

void BlockSync::reset() {
  const std::size_t applying = applying_;
  *this = BlockSync{};
  applying_ = applying;
}

std::vector<std::uint64_t> BlockSync::take_repaired() {
  if (applying_ != 0 || purpose_ != Purpose::repair) return {};
  return std::exchange(repaired_, {});
}

void BlockSync::become(Actions& out, std::optional<LinkId> parent) {
  const bool gave_up_version = gave_up_version_;
  reset();
  gave_up_version_ = gave_up_version;
  phase_ = Phase::wait_manifest;
  if (parent) out.push_back(SendMessage{*parent, SyncManifestRequest{}});
}

void BlockSync::fetch(Purpose purpose, const std::vector<std::uint64_t>& ordinals, Actions& out,
                      std::optional<LinkId> parent) {
  if (phase_ == Phase::none) {
    phase_ = Phase::fetching;
    purpose_ = purpose;
  }
  for (std::uint64_t ordinal : ordinals)
    if (missing_.insert(ordinal).second) {
      wanted_.push_back(ordinal);
      ++total_;
    }
  request(out, parent);
}

void BlockSync::parent_lost() {
  if (phase_ == Phase::none || phase_ == Phase::saving) return;
  outstanding_.clear();
  wanted_.assign(missing_.begin(), missing_.end());
  table_lost_ = phase_ == Phase::preparing;
  if (purpose_ == Purpose::become && phase_ != Phase::preparing) phase_ = Phase::wait_manifest;
}

void BlockSync::parent_found(LinkId parent, Actions& out) {
  if (phase_ == Phase::wait_manifest) out.push_back(SendMessage{parent, SyncManifestRequest{}});
  if (phase_ == Phase::fetching) request(out, parent);
}

void BlockSync::on(const SyncManifest& message, Actions& out, std::optional<LinkId>) {
  if (phase_ != Phase::wait_manifest) return;
  layout_record_ = parse_record(message.layout_record);
  end_record_ = parse_record(message.end_record);
  if (!layout_record_ || !end_record_) return;
  version_ = end_record_->header.version;
  phase_ = Phase::preparing;
  gave_up_version_ = true;
  out.push_back(PrepareSync{layout_record_, end_record_});
}

void BlockSync::on(const SyncPrepared&) {
  if (phase_ == Phase::preparing) phase_ = Phase::digests;
}

void BlockSync::on(const SyncDigests& message, Actions& out) {
  // The table follows the manifest on the link and may arrive while the image is still being hashed: the shell keeps
  // it.
  if (phase_ == Phase::preparing || phase_ == Phase::digests)
    out.push_back(StoreSyncDigests{message.first, message.digests});
}

void BlockSync::on(const SyncFile& message, Actions& out) {
  if (running()) out.push_back(ApplySyncFile{message.file_payload});
}

void BlockSync::on(const SyncCompared& event, Actions& out, std::optional<LinkId> parent) {
  if ((phase_ != Phase::digests && phase_ != Phase::preparing) || event.version != version_) return;
  phase_ = Phase::fetching;
  table_lost_ = false;
  missing_.clear();
  missing_.insert(event.missing.begin(), event.missing.end());
  wanted_.assign(event.missing.begin(), event.missing.end());
  total_ = missing_.size();
  error_code_.clear();
  request(out, parent);
}

void BlockSync::on(const SyncBlocks& message, Actions& out) {
  // Only what was asked for and has not come: a late copy could put a block back that a frame has changed since.
  if (phase_ != Phase::fetching || outstanding_.empty()) return;
  ++applying_;
  out.push_back(
      ApplySyncBlocks{message.frame_payload, {outstanding_.begin(), outstanding_.end()}, purpose_ == Purpose::repair});
}

void BlockSync::on(const SyncUnavailable& message, Instant now) {
  if (phase_ != Phase::fetching) return;
  for (std::uint64_t ordinal : message.ordinals)
    if (outstanding_.erase(ordinal) != 0) wanted_.push_back(ordinal);
  retry_at_ = now + retry_after;
}

void BlockSync::on(const SyncBlocksApplied& event, Instant now, Actions& out, std::optional<LinkId> parent) {
  if (applying_ != 0) --applying_;
  if (phase_ != Phase::fetching) return;
  for (std::uint64_t ordinal : event.verified) {
    if (purpose_ == Purpose::repair && missing_.erase(ordinal) != 0) repaired_.push_back(ordinal);
    missing_.erase(ordinal);
    outstanding_.erase(ordinal);
  }
  for (std::uint64_t ordinal : event.refused) {
    if (outstanding_.erase(ordinal) != 0) wanted_.push_back(ordinal);
    retry_at_ = now + retry_after;
  }
  if (!event.error_code.empty()) {
    fail(event.error_code, event.error_text, true, now);
    outstanding_.clear();
    wanted_.assign(missing_.begin(), missing_.end());
  } else if (event.refused.empty()) {
    error_code_.clear();
  }
  if (!retry_at_) request(out, parent);
}

void BlockSync::on(const SyncFailed& event, Instant now) {
  if (phase_ == Phase::none) return;
  phase_ = Phase::wait_manifest;
  fail(event.code, event.text, event.retryable, now);
}

void BlockSync::on(const CommitSaved& event, Instant now) {
  if (phase_ != Phase::saving || event.error_code.empty()) return;
  // What the shell lacks for saving comes with a new manifest only; any other failure is one of this host's disk.
  const bool lacking = event.error_code == "SYNC_FILES_MISSING" || event.error_code == "SYNC_AGAIN";
  phase_ = lacking ? Phase::wait_manifest : Phase::fetching;
  fail(event.error_code, event.error_text, true, now);
}

void BlockSync::tick(Instant now, Actions& out, std::optional<LinkId> parent) {
  if (phase_ != Phase::fetching || !parent || missing_.size() != missing_seen_) progress_at_ = now;
  missing_seen_ = missing_.size();
  if (phase_ == Phase::fetching && purpose_ == Purpose::become && missing_.empty() && !retry_at_) {
    phase_ = Phase::saving;
    out.push_back(SaveSynced{version_});
    return;
  }
  if (phase_ == Phase::digests && table_lost_ && parent) {
    table_lost_ = false;
    phase_ = Phase::wait_manifest;
    retry_at_ = now;
  }
  if (!retry_at_ || now < *retry_at_) return;
  retry_at_.reset();
  if (phase_ == Phase::fetching) request(out, parent);
  if (phase_ == Phase::wait_manifest && parent) out.push_back(SendMessage{*parent, SyncManifestRequest{}});
}

void BlockSync::request(Actions& out, std::optional<LinkId> parent) {
  if (!parent || wanted_.empty() || outstanding_.size() + request_min > outstanding_max) return;
  SyncBlocksRequest message;
  while (!wanted_.empty() && outstanding_.size() < outstanding_max) {
    if (outstanding_.insert(wanted_.front()).second) message.ordinals.push_back(wanted_.front());
    wanted_.pop_front();
  }
  std::sort(message.ordinals.begin(), message.ordinals.end());
  if (!message.ordinals.empty()) out.push_back(SendMessage{*parent, std::move(message)});
}

void BlockSync::fail(const std::string& code, const std::string& text, bool retryable, Instant now) {
  error_code_ = code;
  error_text_ = text;
  retryable_ = retryable;
  retry_at_ = now + (retryable ? retry_after : std::chrono::seconds(30));
}

}  // namespace deltarelay::relay
