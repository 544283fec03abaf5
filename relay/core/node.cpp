// Start, log and applying: how the events of store and source move the refit of this node. Links: node_links.cpp; what it says of
// itself: node_report.cpp.
#include "relay/core/node.hpp"

#include <fmt/format.h>

#include <cassert>
#include <type_traits>

#include "codec/payloads.hpp"

namespace deltarelay::relay {
namespace {
RefitNode::Options refit_options(const NodeConfig& config) {
  RefitNode::Options options;
  options.apply_after_decision = config.is_root;
  options.window_bytes = config.apply_window_bytes;
  return options;
}
}  // namespace

Node::Node(NodeConfig config)
    : config_(std::move(config)),
      epoch_(config_.epoch),
      refit_(refit_options(config_)),
      reports_(65536),
      reattach_(config_.candidates, config_.reattach, config_.seed),
      root_(config_.policy, config_.expected, config_.highest_used),
      verify_(config_.name, config_.boot_count) {
  reports_.set_self(describe());
}

/// Whatever the store was doing when it found that a file of the image is another one by now.
template <class StoreEvent>
void Node::notice_replaced_image(const StoreEvent& event) {
  if constexpr (requires { event.error_code; }) {
    if (image_open_ && event.error_code == image_replaced) on(ImageFailed{event.error_code, event.error_text, true});
  } else if constexpr (std::is_same_v<StoreEvent, SyncFailed>) {
    if (image_open_ && event.code == image_replaced) on(ImageFailed{event.code, event.text, true});
  }
}

Actions Node::handle(const Event& event, Instant now) {
  assert(out_.empty());
  now_ = now;
  std::visit(
      [this](const auto& e) {
        on(e);
        notice_replaced_image(e);
      },
      event);
  report(false);
  step_verify();
  return std::exchange(out_, {});
}

// ------------------------------------------------------------------------------------------------ the log

void Node::restore(const codec::RecordPtr& record) {
  const RefitEntry* refit = log_.find(record->header.version);
  const Sequence expected = refit ? refit->next_sequence() : Sequence{};
  if (record->header.sequence != expected) return;  // the store cut the log before this record
  (void)log_.append(record).has_error();
}

bool Node::append(const codec::RecordPtr& record) {
  if (auto appended = log_.append(record); !appended) {
    out_.push_back(Note{Note::Level::error, "RECORD_MALFORMED",
                        fmt::format("record {} of v{}: {}", codec::raw(record->header.sequence),
                                    codec::raw(record->header.version), appended.error().message())});
    return false;
  }
  epoch_ = std::max(epoch_, record->header.epoch);
  out_.push_back(AppendRecord{record});
  for (auto& [link, child] : children_) child.pump(log_, out_);
  // A newer refit from the same base says that ours was aborted (LogIndex::append).
  const RefitEntry* ours = refit_.phase() == RefitNode::Phase::idle ? nullptr : current();
  if (ours != nullptr && (record->header.version == refit_.version() || ours->decision == false))
    refit_.appended(*ours, out_);
  else
    start_refit_if_due();
  return true;
}

void Node::start_refit_if_due() {
  if (!image_open_ || codec::raw(image_.version) == 0 || sync_.running() || refit_.phase() != RefitNode::Phase::idle)
    return;
  const RefitEntry* refit = log_.from_base(image_.version);
  if (refit == nullptr || refit->base_image != image_.image) return;
  refit_.begin(*refit, out_);
}

void Node::drop_old_refits() {
  std::vector<Version> decided;
  std::uint64_t bytes = 0;
  for (const auto& [version, refit] : log_.refits()) {
    bytes += refit.payload_bytes;
    if (refit.decision && version <= image_.version) decided.push_back(version);
  }
  for (std::size_t i = 0;
       i < decided.size() && (i + config_.refits_kept < decided.size() || bytes > config_.log_bytes_max); ++i) {
    bytes -= log_.find(decided[i])->payload_bytes;
    log_.drop(decided[i]);
    out_.push_back(DropRefit{decided[i]});
  }
}

ResumePoint Node::resume_point() const {
  // An undone refit is gone on with where its log ends; else whatever follows the image is wanted.
  const Version newest = log_.newest();
  const RefitEntry* refit = log_.find(newest);
  if (refit == nullptr || newest <= image_.version || refit->decision) return {};
  return {LogPosition{newest, refit->next_sequence()}, refit->begun};
}

Sequence Node::next_of_refit() const {
  const RefitEntry* refit = refit_of_root();
  return refit ? refit->next_sequence() : Sequence{};
}

bool Node::ready_to_publish() const {
  return image_open_ && codec::raw(image_.version) != 0 && refit_.phase() == RefitNode::Phase::idle && !sync_.running();
}

// ------------------------------------------------------------------------------------------------ image and refit

void Node::on(const ImageOpened& event) {
  image_ = event.image;
  image_open_ = true;
  // The parent was told of a failed image: what follows depends on what the image is, so greet anew.
  const bool greeted = parent_phase_ == ParentPhase::greeting || parent_phase_ == ParentPhase::attached;
  if (!std::exchange(image_error_code_, {}).empty() && greeted)
    close(*parent_link_, "IMAGE_OPENED", "the image is open now");
  if (config_.is_root && pending_) {
    const PendingRefit pending = *pending_;
    pending_.reset();
    const RefitEntry* refit = log_.find(pending.version);
    if (pending.version > image_.version && !pending.decision) {
      // Others may hold more of it than this log does: nothing can be appended that all of them would take for its end.
      if (refit != nullptr) out_.push_back(DropRefit{pending.version});
      log_.drop(pending.version);
      root_.presume_aborted(pending.version, pending.base, now_);
    } else if (pending.version > image_.version && refit != nullptr && !refit->decision) {
      root_.resume(pending.version, pending.base, *pending.decision, refit->next_sequence(), now_, out_);
    }
  }
  start_refit_if_due();
  answer_early_hellos();
  send_manifests();
}

void Node::on(const ImageFailed& event) {
  image_error_code_ = event.code;
  image_error_text_ = event.text;
  image_retryable_ = event.retryable;
  answer_early_hellos();
  if (!std::exchange(image_open_, false)) return;
  // It was open: what was applied may have gone to files that no engine sees. Nothing counts until it is hashed anew.
  image_ = ImageState{};
  if (refit_.phase() != RefitNode::Phase::idle) refit_.undone();
  sync_.finish();
  out_.push_back(ReopenImage{});
}

void Node::on(const EnginesAwaited& event) {
  wait_code_ = event.code;
  wait_text_ = event.text;
}

void Node::on(const LogFailed& event) {
  log_error_code_ = event.code;
  log_error_text_ = event.text;
}

void Node::on(const MarkFailed& event) {
  refit_.on(event, now_);
}

void Node::on(const FrameApplied& event) {
  if (event.version != refit_.version() || current() == nullptr) return;
  refit_.on(event, *current(), now_, out_);
  if (!event.needs_repair.empty()) {
    out_.push_back(
        Note{Note::Level::warn, "BLOCK_DAMAGED",
             fmt::format("{} blocks are neither at v{} nor at v{}; repairing them from the parent",
                         event.needs_repair.size(), codec::raw(refit_.base()), codec::raw(refit_.version()))});
    if (!sync_.running() || sync_.purpose() == BlockSync::Purpose::repair)
      sync_.fetch(BlockSync::Purpose::repair, event.needs_repair, out_, parent_link());
  }
}

void Node::on(const ImageSynced& event) {
  if (event.version != refit_.version() || current() == nullptr) return;
  refit_.on(event, *current(), now_, out_);
}

void Node::on(const CommitSaved& event) {
  // A sync may have begun while the refit's ledger was being written: what is answered then is not the sync's.
  if (sync_.phase() == BlockSync::Phase::saving) {
    sync_.on(event, now_);
    if (!event.error_code.empty()) return;
    image_ = event.image;
    sync_.finish();
    reattach_.settled();
    // The refit that was under way led to a version that the sync has reached or passed.
    if (refit_.phase() != RefitNode::Phase::idle && refit_.base() != image_.version) refit_.undone();
    stream_from_parent();
  } else {
    if (!refit_.on(event, now_)) return;
    image_ = event.image;
    if (sync_.running() &&
        sync_.purpose() == BlockSync::Purpose::become) {  // asked for, not begun: not needed any more
      sync_.finish();
      stream_from_parent();
    }
  }
  out_.push_back(Note{Note::Level::info, "COMMITTED", fmt::format("v{} is committed", codec::raw(image_.version))});
  drop_old_refits();
  part_from_other_histories();
  send_manifests();
  serve_blocks();
  start_refit_if_due();
}

void Node::on(const BaseCompared& event) {
  if (!refit_.on(event, now_)) return;
  if (event.differing.empty()) {
    refit_.undone();
    reattach_.settled();
    start_refit_if_due();
    return;
  }
  if (sync_.running() && sync_.purpose() == BlockSync::Purpose::become) return;  // it brings the whole image
  sync_.finish();
  sync_.fetch(BlockSync::Purpose::revert, event.differing, out_, parent_link());
}

// ------------------------------------------------------------------------------------------------ block sync

void Node::on(const SyncPrepared& event) {
  sync_.on(event);
}

void Node::on(const SyncCompared& event) {
  sync_.on(event, out_, parent_link());
  send_manifests();
  serve_blocks();
  finish_sync_if_complete();
}

void Node::on(const SyncBlocksApplied& event) {
  sync_.on(event, now_, out_, parent_link());
  if (sync_.running() && current() != nullptr)
    if (const std::vector<std::uint64_t> repaired = sync_.take_repaired(); !repaired.empty())
      refit_.repaired(repaired, *current(), out_);
  serve_blocks();
  finish_sync_if_complete();
}

void Node::finish_sync_if_complete() {
  if (!sync_.complete()) return;
  switch (sync_.purpose()) {
    case BlockSync::Purpose::become:
      sync_.tick(now_, out_, parent_link());
      return;
    case BlockSync::Purpose::repair:
      sync_.finish();
      return;
    case BlockSync::Purpose::revert:
      // The content is back: compare once more, so that IDLE is said of what was seen and not of what was hoped.
      sync_.finish();
      out_.push_back(CompareWithBase{refit_.version()});
      return;
  }
}

void Node::on(const SyncFailed& event) {
  sync_.on(event, now_);
}

void Node::on(const SyncBlocksSent& event) {
  auto found = children_.find(event.link);
  if (found == children_.end()) return;
  found->second.blocks_served();
  if (!event.unavailable.empty()) out_.push_back(SendMessage{event.link, SyncUnavailable{event.unavailable}});
  serve_blocks();
}

void Node::send_manifests() {
  const bool from_sync = sync_.running() && sync_.manifest_holds();
  if (!from_sync && (codec::raw(image_.version) == 0 || sync_.running())) return;
  const codec::RecordPtr& layout = from_sync ? sync_.layout_record() : image_.layout_record;
  const codec::RecordPtr& end = from_sync ? sync_.end_record() : image_.end_record;
  if (!layout || !end) return;
  for (auto& [link, child] : children_) {
    if (!std::exchange(child.manifest_wanted, false)) continue;
    SyncManifest manifest{layout->bytes, end->bytes};
    out_.push_back(SendMessage{link, std::move(manifest)});
    out_.push_back(SendSyncDigests{link});
    out_.push_back(SendSyncFiles{link});
  }
}

void Node::serve_blocks() {
  const bool holds = image_open_ || (sync_.running() && sync_.manifest_holds());
  for (auto& [link, child] : children_)
    child.serve_blocks([&](std::uint64_t ordinal) { return holds && sync_.has_block(ordinal); }, out_);
}

// ------------------------------------------------------------------------------------------------ root

void Node::on(const PublishRequested& event) {
  if (!config_.is_root) {
    out_.push_back(Answer{event.request, Version{}, "NOT_ROOT",
                          fmt::format("{} is not the root; publish on the root's host", config_.name)});
    return;
  }
  root_.on(event, image_.version, ready_to_publish(), now_, out_);
}

void Node::on(const AbortRequested& event) {
  root_.on(event, next_of_refit(), now_, out_);
}
void Node::on(const ManifestSaved& event) {
  root_.on(event, now_, out_);
}

void Node::on(const RecordProduced& event) {
  const bool appended = append(event.record);
  assert(appended);
  root_.record_appended(event.record, next_of_refit(), now_, out_);
}

void Node::on(const EncodeEnded& event) {
  root_.on(event, next_of_refit(), now_, out_);
  if (!event.error_code.empty()) out_.push_back(Note{Note::Level::error, event.error_code, event.error_text});
}

void Node::on(const DecisionSaved& event) {
  root_.on(event, now_, out_);
  if (!event.record) return;
  const bool appended = append(event.record);
  assert(appended);
}

}  // namespace deltarelay::relay
