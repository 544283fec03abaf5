// What a node says of itself: its record, sent up when it changes, and its troubles, told once.
#include <utility>

#include "codec/payloads.hpp"
#include "relay/core/node.hpp"

namespace deltarelay::relay {

NodeRecord Node::describe() const {
  NodeRecord record;
  record.name = config_.name;
  record.parent = parent_phase_ == ParentPhase::attached ? parent_ : std::string{};
  record.boot_id = config_.boot_id;
  record.attach_sequence = first_of_boot(config_.boot_count) + attachments_;
  record.rank = config_.rank;
  record.committed = image_.version;
  record.image = image_.image;
  record.state = image_open_ ? NodeState::idle : NodeState::starting;
  if (const RefitEntry* refit = current(); refit != nullptr && refit_.phase() != RefitNode::Phase::idle) {
    record.receiving = refit_.version();
    record.target = refit->target;
    record.frames_received = refit->frame_count;
    record.frames_applied = refit_.frames_applied();
    record.received_bytes = refit->payload_bytes;
    if (refit->end_record)
      if (auto end = codec::EndPayload::decode(refit->end_record->payload())) record.frames_total = end->frame_count;
    switch (refit_.phase()) {
      case RefitNode::Phase::prepared:
        record.state = NodeState::prepared;
        break;
      case RefitNode::Phase::committing:
        record.state = NodeState::committing;
        break;
      case RefitNode::Phase::undoing:
        record.state = NodeState::syncing;
        break;
      default:
        record.state = NodeState::receiving;
    }
    // The root keeps its base until the decision; with END in its log it has all that a prepared node needs. When it was
    // restarted after the decision, its image may be on the way already.
    if (config_.is_root && refit->end_record && !refit->decision)
      record.state = root_.committing() ? NodeState::committing : NodeState::prepared;
  }
  if (sync_.running()) {
    if (sync_.purpose() != BlockSync::Purpose::repair) record.state = NodeState::syncing;
    record.sync_blocks_total = sync_.total();
    record.sync_blocks_done = sync_.done();
  }
  const auto failed = [&](const std::string& code, const std::string& text, bool retryable) {
    if (code.empty() || !record.reason_code.empty()) return;
    record.state = NodeState::failed;
    record.reason_code = code;
    record.reason_text = text;
    record.retryable = retryable;
  };
  failed(image_error_code_, image_error_text_, image_retryable_);
  failed(log_error_code_, log_error_text_, true);
  failed(refit_.error_code(), refit_.error_text(), true);
  failed(sync_.error_code(), sync_.error_text(), sync_.retryable());
  if (record.reason_code.empty()) {  // a wait is no failure: the state stays
    record.reason_code = wait_code_;
    record.reason_text = wait_text_;
  }
  return record;
}

void Node::note_trouble(const NodeRecord& self) {
  // Once when it begins and once when it is over: a full disk is tried again each second, and by every frame.
  if (self.reason_code == noted_code_) return;
  const Note::Level level = self.state == NodeState::failed ? Note::Level::error : Note::Level::warn;
  if (self.reason_code.empty())
    out_.push_back(Note{Note::Level::info, "RECOVERED", noted_code_ + " is over"});
  else
    out_.push_back(Note{level, self.reason_code, self.reason_text});
  noted_code_ = self.reason_code;
}

void Node::report(bool force) {
  NodeRecord self = describe();
  note_trouble(self);
  const bool urgent = reports_.set_self(std::move(self)) || force;
  if (config_.is_root) root_.evaluate(reports_.all(), refit_of_root(), now_, out_);
  if (parent_phase_ != ParentPhase::attached || !reports_.pending() || (!urgent && now_ < report_at_)) return;
  report_at_ = now_ + config_.report_interval;
  while (reports_.pending()) out_.push_back(SendMessage{*parent_link_, Report{reports_.take(report_records_max)}});
}

}  // namespace deltarelay::relay
