// When histories differ: a root may die in the middle of a refit, or come back without its ledger and use numbers anew.
// Versions are known by their content, refits by the epoch of their BEGIN, and what does not lead on is left behind.
#include <fmt/format.h>

#include <algorithm>

#include "relay/core/node.hpp"

namespace deltarelay::relay {
namespace {
constexpr Duration orphan_grace = std::chrono::seconds(5);
}

/// What the log holds is not what leads on from the image, so no frame of it can ever be applied: the image is of
/// another history than the parent's, or too old, and becomes the parent's version by content.
void Node::become_if_history_differs() {
  if (!image_open_ || codec::raw(image_.version) == 0 || !parent_link()) return;
  if (sync_.running() || refit_.phase() != RefitNode::Phase::idle) return;
  for (const auto& [version, refit] : log_.refits()) {
    if (version <= image_.version || refit.decision == false) continue;
    if (refit.base != image_.version || refit.base_image != image_.image) sync_.become(out_, parent_link());
    return;
  }
}

/// The image is about to be written over, whatever becomes of this link: this host is of no version and in no refit
/// until the sync ends, and neither its log nor what its children were told leads on from what comes.
void Node::leave_history() {
  const bool had_one = codec::raw(image_.version) != 0 || !log_.refits().empty();
  image_ = ImageState{};
  if (refit_.phase() != RefitNode::Phase::idle) refit_.undone();
  for (const auto& [version, refit] : log_.refits()) out_.push_back(DropRefit{version});
  log_ = LogIndex{};
  if (!had_one) return;  // then its children wait for a manifest, and that is still what they need
  for (const auto& [link, child] : children_)
    close(link, "HISTORY_LEFT", fmt::format("{} becomes its parent's version by block sync", config_.name));
}

/// Children that seemed to be ahead, and are at a version of a root that a later one has overruled.
void Node::part_from_other_histories() {
  for (const auto& [link, child] : children_)
    if (child.waits_ahead && *child.waits_ahead < image_epoch())
      close(link, "HISTORY_DIFFERS", fmt::format("{} is at a version of a later epoch", config_.name));
}

/// A refit that a root left open when it died is over, and nodes that are still in it learn it from the BEGIN of
/// another one from the same base. Nobody knows when an operator publishes next: one that changes nothing says it now.
void Node::end_orphans() {
  if (!config_.is_root || root_.busy() || !ready_to_publish()) return;
  Version orphan{};
  for (const auto& [name, record] : reports_.others()) {
    if (!record.reachable || record.receiving <= image_.version) continue;
    const RefitEntry* known = log_.find(record.receiving);
    const bool in_it = record.state == NodeState::receiving || record.state == NodeState::prepared;
    if (known == nullptr || (known->decision == false && in_it)) orphan = std::max(orphan, record.receiving);
  }
  if (codec::raw(orphan) == 0) return orphan_since_.reset();
  if (!orphan_since_) orphan_since_ = now_;
  if (now_ - *orphan_since_ < orphan_grace) return;  // what it says may be on its way, and so may its ABORT
  orphan_since_.reset();
  root_.open_void(orphan, image_.version, now_, out_);
}

}  // namespace deltarelay::relay
