// The child's side of block sync: bring the image to a version by content, block by block, from the parent.
//
// One mechanism, three purposes: `become` (no image, or another one: take the parent's committed version), `revert` (an
// aborted refit touched blocks: put the committed content back) and `repair` (single blocks of a refit in flight are
// damaged). Layer: relay/core. Blocks travel in windows, so the parent serves each as soon as it holds it itself: a
// tree of empty hosts fills like a pipeline.
#pragma once

#include <deque>
#include <optional>
#include <set>

#include "relay/core/actions.hpp"

namespace deltarelay::relay {

class BlockSync {
 public:
  enum class Phase : std::uint8_t { none, wait_manifest, preparing, digests, fetching, saving };
  enum class Purpose : std::uint8_t { become, revert, repair };

  /// Become what the parent's manifest says. Restarts when already running.
  void become(Actions& out, std::optional<LinkId> parent);
  /// Fetch these blocks of the image that is open.
  void fetch(Purpose purpose, const std::vector<std::uint64_t>& ordinals, Actions& out, std::optional<LinkId> parent);
  void parent_lost();
  void parent_found(LinkId parent, Actions& out);

  void on(const SyncManifest& message, Actions& out, std::optional<LinkId> parent);
  void on(const SyncDigests& message, Actions& out);
  void on(const SyncBlocks& message, Actions& out);
  void on(const SyncFile& message, Actions& out);
  void on(const SyncUnavailable& message, Instant now);
  void on(const SyncPrepared& event);
  void on(const SyncCompared& event, Actions& out, std::optional<LinkId> parent);
  /// Returns the blocks now verified.
  void on(const SyncBlocksApplied& event, Instant now, Actions& out, std::optional<LinkId> parent);
  void on(const SyncFailed& event, Instant now);
  void on(const CommitSaved& event, Instant now);
  void tick(Instant now, Actions& out, std::optional<LinkId> parent);
  void finish() { reset(); }

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] Purpose purpose() const noexcept { return purpose_; }
  /// Becoming a version or putting one back, and for long no block came that is of it: the parent's blocks are at
  /// another one. Call after tick().
  [[nodiscard]] bool stalled(Instant now) const noexcept {
    if (purpose_ == Purpose::repair || phase_ != Phase::fetching || missing_.empty()) return false;
    return now - progress_at_ > (purpose_ == Purpose::become ? stalled_after : revert_stalled_after);
  }
  /// Becoming a version, and PrepareSync was given: the image is on its way and of no version until the sync ends.
  [[nodiscard]] bool gave_up_version() const noexcept { return gave_up_version_; }
  [[nodiscard]] bool running() const noexcept { return phase_ != Phase::none; }
  /// Fetching, nothing is lacking any more, and no block is on its way into the image.
  [[nodiscard]] bool complete() const noexcept {
    return phase_ == Phase::fetching && missing_.empty() && applying_ == 0;
  }
  /// The blocks repaired since the last call; none while any is on its way into the image. A second copy of a block,
  /// taken before the first was verified, would else put it back under the frame that is applied next.
  [[nodiscard]] std::vector<std::uint64_t> take_repaired();
  [[nodiscard]] Version version() const noexcept { return version_; }
  /// Whether the block's content may be served to a child of ours.
  [[nodiscard]] bool has_block(std::uint64_t ordinal) const {
    if (phase_ == Phase::none) return true;
    return (phase_ == Phase::fetching || phase_ == Phase::saving) && missing_.count(ordinal) == 0;
  }
  /// The manifest in use: our children get the same one. Null records before it is known to hold.
  [[nodiscard]] bool manifest_holds() const noexcept {
    return purpose_ == Purpose::become && (phase_ == Phase::fetching || phase_ == Phase::saving);
  }
  [[nodiscard]] const codec::RecordPtr& layout_record() const noexcept { return layout_record_; }
  [[nodiscard]] const codec::RecordPtr& end_record() const noexcept { return end_record_; }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::uint64_t done() const noexcept { return total_ - missing_.size(); }
  [[nodiscard]] const std::string& error_code() const noexcept { return error_code_; }
  [[nodiscard]] const std::string& error_text() const noexcept { return error_text_; }
  [[nodiscard]] bool retryable() const noexcept { return retryable_; }

 private:
  static constexpr Duration stalled_after = std::chrono::seconds(5);
  static constexpr Duration revert_stalled_after = std::chrono::seconds(10);

  void reset();
  void request(Actions& out, std::optional<LinkId> parent);
  void fail(const std::string& code, const std::string& text, bool retryable, Instant now);

  Phase phase_ = Phase::none;
  Purpose purpose_ = Purpose::become;
  Version version_{};
  codec::RecordPtr layout_record_, end_record_;
  std::set<std::uint64_t> missing_;      // lacking
  std::deque<std::uint64_t> wanted_;     // lacking, not asked for
  std::set<std::uint64_t> outstanding_;  // asked for
  std::vector<std::uint64_t> repaired_;  // verified, not yet taken
  std::size_t applying_ = 0;             // ApplySyncBlocks without an answer, of earlier syncs too
  std::uint64_t total_ = 0;
  std::optional<Instant> retry_at_;
  std::size_t missing_seen_ = 0;  // at the last tick
  Instant progress_at_{};
  bool gave_up_version_ = false;
  bool table_lost_ = false;  // the parent went while the image was hashed, and may not have sent its whole table
  std::string error_code_, error_text_;
  bool retryable_ = true;
};

}  // namespace deltarelay::relay
