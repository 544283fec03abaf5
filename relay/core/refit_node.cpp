#include "relay/core/refit_node.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "codec/payloads.hpp"

namespace deltarelay::relay {

void RefitNode::begin(const RefitEntry& refit, Actions& out) {
  assert(phase_ == Phase::idle);
  const Options options = options_;
  *this = RefitNode(options);
  phase_ = Phase::receiving;
  version_ = refit.version;
  base_ = refit.base;
  appended(refit, out);
}

void RefitNode::appended(const RefitEntry& refit, Actions& out) {
  assert(refit.version == version_);
  if (refit.decision == false) {
    if (phase_ == Phase::undoing) return;
    phase_ = Phase::undoing;
    repairs_.clear();
    retry_.clear();
    clear_error();
    out.push_back(CompareWithBase{version_});
    return;
  }
  if (phase_ == Phase::receiving) pump(refit, out);
  maybe_commit(refit, out);
}

void RefitNode::pump(const RefitEntry& refit, Actions& out) {
  if (options_.apply_after_decision && refit.decision != true) return;
  const auto give = [&](Sequence sequence, std::uint32_t bytes) {
    if (!touched_image_) {
      touched_image_ = true;
      out.push_back(MarkApplying{base_, version_});
    }
    in_flight_.emplace(sequence, bytes);
    in_flight_bytes_ += bytes;
    out.push_back(ApplyRecord{LogPosition{version_, sequence}});
  };
  if (!retry_at_)
    for (auto it = retry_.begin(); it != retry_.end() && in_flight_bytes_ < options_.window_bytes; it = retry_.erase(it))
      give(it->first, it->second);
  if (codec::raw(next_apply_) == 0) next_apply_ = Sequence{1};  // BEGIN has nothing to apply
  const Sequence end = refit.end_record ? refit.end_record->header.sequence : refit.next_sequence();
  while (next_apply_ < end && in_flight_bytes_ < options_.window_bytes) {
    give(next_apply_, refit.record_bytes[codec::raw(next_apply_)]);
    next_apply_ = codec::next(next_apply_);
  }
  maybe_sync(refit, out);
}

void RefitNode::maybe_sync(const RefitEntry& refit, Actions& out) {
  if (phase_ != Phase::receiving || !refit.end_record || next_apply_ < refit.end_record->header.sequence) return;
  if (!in_flight_.empty() || !retry_.empty() || !repairs_.empty()) return;
  phase_ = Phase::syncing_image;
  out.push_back(SyncImage{version_});
}

void RefitNode::maybe_commit(const RefitEntry& refit, Actions& out) {
  if (phase_ != Phase::prepared || refit.decision != true) return;
  phase_ = Phase::committing;
  out.push_back(SaveCommit{version_, refit.end_record});
}

void RefitNode::on(const MarkFailed& event, Instant now) {
  if (event.version != version_ || phase_ != Phase::receiving) return;
  mark_again_ = true;
  fail(event.error_code, event.error_text, now);
}

void RefitNode::on(const FrameApplied& event, const RefitEntry& refit, Instant now, Actions& out) {
  if (event.version != version_) return;
  auto found = in_flight_.find(event.sequence);
  if (found == in_flight_.end()) return;
  const std::uint32_t bytes = found->second;
  in_flight_bytes_ -= bytes;
  in_flight_.erase(found);
  if (phase_ != Phase::receiving) return;  // aborted meanwhile
  if (!event.error_code.empty()) {
    retry_.emplace(event.sequence, bytes);
    fail(event.error_code, event.error_text, now);
  } else if (!event.needs_repair.empty()) {
    for (std::uint64_t ordinal : event.needs_repair) repairs_.emplace(ordinal, event.sequence);
  } else {
    ++frames_applied_;
    if (retry_.empty()) clear_error();
  }
  pump(refit, out);
}

void RefitNode::on(const ImageSynced& event, const RefitEntry& refit, Instant now, Actions& out) {
  if (event.version != version_ || phase_ != Phase::syncing_image) return;
  if (!event.error_code.empty()) {
    phase_ = Phase::receiving;
    fail(event.error_code, event.error_text, now);
    return;
  }
  auto end = codec::EndPayload::decode(refit.end_record->payload());
  if (!end || end->image != event.image) {
    phase_ = Phase::receiving;
    fail("IMAGE_DIGEST_MISMATCH",
         "every frame of v" + std::to_string(codec::raw(version_)) +
             " is applied, yet the image's digest is not the one that the root sealed; the whole image is compared again",
         now);
    return;
  }
  clear_error();
  phase_ = Phase::prepared;
  maybe_commit(refit, out);
}

bool RefitNode::on(const CommitSaved& event, Instant now) {
  if (phase_ != Phase::committing || (event.error_code.empty() && event.image.version != version_)) return false;
  if (!event.error_code.empty()) {
    phase_ = Phase::prepared;
    fail(event.error_code, event.error_text, now);
    return false;
  }
  undone();
  return true;
}

bool RefitNode::on(const BaseCompared& event, Instant now) {
  if (phase_ != Phase::undoing || event.version != version_) return false;
  if (!event.error_code.empty()) {
    fail(event.error_code, event.error_text, now);
    return false;
  }
  return true;
}

void RefitNode::repaired(const std::vector<std::uint64_t>& ordinals, const RefitEntry& refit, Actions& out) {
  for (std::uint64_t ordinal : ordinals) {
    auto found = repairs_.find(ordinal);
    if (found == repairs_.end()) continue;
    const Sequence sequence = found->second;
    repairs_.erase(found);
    const bool more = std::any_of(repairs_.begin(), repairs_.end(), [&](const auto& r) { return r.second == sequence; });
    if (!more) retry_.emplace(sequence, refit.record_bytes[codec::raw(sequence)]);
  }
  if (phase_ == Phase::receiving) pump(refit, out);
}

void RefitNode::tick(const RefitEntry* refit, Instant now, Actions& out) {
  if (!retry_at_ || now < *retry_at_ || refit == nullptr) return;
  retry_at_.reset();
  if (phase_ == Phase::receiving && std::exchange(mark_again_, false)) out.push_back(MarkApplying{base_, version_});
  if (phase_ == Phase::receiving) pump(*refit, out);
  if (phase_ == Phase::undoing) out.push_back(CompareWithBase{version_});
  maybe_commit(*refit, out);
}

void RefitNode::undone() {
  const Options options = options_;
  *this = RefitNode(options);
}

void RefitNode::fail(std::string code, std::string text, Instant now) {
  error_code_ = std::move(code);
  error_text_ = std::move(text);
  retry_at_ = now + options_.retry_after;
}

void RefitNode::clear_error() {
  error_code_.clear();
  error_text_.clear();
  retry_at_.reset();
}

std::vector<std::uint64_t> RefitNode::blocks_to_repair() const {
  std::vector<std::uint64_t> out;
  for (const auto& [ordinal, sequence] : repairs_) out.push_back(ordinal);
  return out;
}

}  // namespace deltarelay::relay
