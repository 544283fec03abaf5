// One child of this node: the cursor that decides which record of the log goes to it next, and the blocks it asked for.
//
// Layer: relay/core. Invariant: bytes given to the link and not yet sent stay within the window, whatever the child does.
// Why a cursor and not a queue: a stalled child must cost a number, not its backlog (ARCHITECTURE.md, "The log").
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "relay/core/actions.hpp"
#include "relay/core/log_index.hpp"

namespace deltarelay::relay {

class ChildSession {
 public:
  enum class Phase : std::uint8_t { greeting, streaming, syncing };

  ChildSession(LinkId link, std::string name, std::uint64_t window_bytes)
      : link_(link), name_(std::move(name)), window_bytes_(window_bytes) {}

  /// greeting|syncing|streaming -> streaming, from `point` or, when the log has not that refit, from whatever follows
  /// `committed`.
  void stream_from(Version committed, const ResumePoint& point, const LogIndex& log, Actions& out);
  /// greeting -> syncing
  void sync() { phase_ = Phase::syncing; }
  /// Goes back (or on) to a position the child names. Ignored unless streaming.
  void rewind(LogPosition position, const LogIndex& log, Actions& out);
  /// Sends what the window allows. Call after each append.
  void pump(const LogIndex& log, Actions& out);
  void sent(std::uint64_t bytes, const LogIndex& log, Actions& out);

  /// Blocks asked for; served in order, a few at a time, once `available` says so.
  void want_blocks(const std::vector<std::uint64_t>& ordinals);
  template <class Available>
  void serve_blocks(const Available& available, Actions& out) {
    if (serving_) return;
    std::vector<std::uint64_t> batch;
    while (!wanted_.empty() && batch.size() < blocks_per_batch && available(wanted_.front())) {
      batch.push_back(wanted_.front());
      wanted_.pop_front();
    }
    if (batch.empty()) return;
    serving_ = true;
    out.push_back(SendSyncBlocks{link_, std::move(batch)});
  }
  void blocks_served() { serving_ = false; }

  /// It said hello before this node knew what it holds.
  std::optional<Hello> unanswered;
  bool manifest_wanted = false;
  /// It is ahead of this node, at a version of this epoch.
  std::optional<Epoch> waits_ahead;

  [[nodiscard]] LinkId link() const noexcept { return link_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] LogPosition position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t unsent_bytes() const noexcept { return unsent_bytes_; }

 private:
  static constexpr std::size_t blocks_per_batch = 8;
  static constexpr std::size_t wanted_max = 4096;  // a child may not make us remember more than this

  LinkId link_;
  std::string name_;
  std::uint64_t window_bytes_;
  std::uint64_t unsent_bytes_ = 0;
  Phase phase_ = Phase::greeting;
  Version done_through_{};
  LogPosition position_;
  std::deque<std::uint64_t> wanted_;
  bool serving_ = false;
};

}  // namespace deltarelay::relay
