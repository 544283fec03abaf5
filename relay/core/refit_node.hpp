// The refit in flight on one node: which records are applied, when the node is prepared, and what a decision does.
//
// Layer: relay/core. States (design.md section 7):
//
//   idle -> receiving -> syncing_image -> prepared -> committing -> idle
//              |                |            |
//              +----------------+------------+--> undoing (abort) -> idle
//
// A refit is applied as its frames arrive, in any order the workers finish; the root applies only after the decision,
// because its image is the base that it encodes against, and the copy from which an abort is repaired.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "relay/core/actions.hpp"
#include "relay/core/log_index.hpp"

namespace deltarelay::relay {

class RefitNode {
 public:
  enum class Phase : std::uint8_t { idle, receiving, syncing_image, prepared, committing, undoing };
  struct Options {
    bool apply_after_decision = false;
    std::uint64_t window_bytes = 64u << 20;  ///< frames given to the workers at once
    Duration retry_after = std::chrono::seconds(5);
  };

  explicit RefitNode(Options options) : options_(options) {}

  /// idle -> receiving. `refit` is the log's entry of an undone refit whose base is the image's version.
  void begin(const RefitEntry& refit, Actions& out);
  /// A record of the current refit was appended (or restored).
  void appended(const RefitEntry& refit, Actions& out);
  /// Nothing is applied before the image is marked: it is asked for again after a while.
  void on(const MarkFailed& event, Instant now);
  void on(const FrameApplied& event, const RefitEntry& refit, Instant now, Actions& out);
  void on(const ImageSynced& event, const RefitEntry& refit, Instant now, Actions& out);
  /// committing -> idle; true when the version is now committed.
  bool on(const CommitSaved& event, Instant now);
  /// undoing: true when this was the comparison waited for; `differing` is then to be fetched from the parent.
  bool on(const BaseCompared& event, Instant now);
  /// Blocks repaired: their frames are applied again.
  void repaired(const std::vector<std::uint64_t>& ordinals, const RefitEntry& refit, Actions& out);
  void tick(const RefitEntry* refit, Instant now, Actions& out);
  /// undoing -> idle
  void undone();

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] Version version() const noexcept { return version_; }
  [[nodiscard]] Version base() const noexcept { return base_; }
  [[nodiscard]] std::uint64_t frames_applied() const noexcept { return frames_applied_; }
  [[nodiscard]] const std::string& error_code() const noexcept { return error_code_; }
  [[nodiscard]] const std::string& error_text() const noexcept { return error_text_; }
  /// Ordinals of blocks that wait for a repair from the parent.
  [[nodiscard]] std::vector<std::uint64_t> blocks_to_repair() const;
  [[nodiscard]] bool touched_image() const noexcept { return touched_image_; }

 private:
  void pump(const RefitEntry& refit, Actions& out);
  void maybe_sync(const RefitEntry& refit, Actions& out);
  void maybe_commit(const RefitEntry& refit, Actions& out);
  void fail(std::string code, std::string text, Instant now);
  void clear_error();

  Options options_;
  Phase phase_ = Phase::idle;
  Version version_{}, base_{};
  Sequence next_apply_{};
  std::map<Sequence, std::uint32_t> in_flight_;          // given to the workers, bytes
  std::map<Sequence, std::uint32_t> retry_;              // failed, to be given again
  std::map<std::uint64_t, Sequence> repairs_;            // block ordinal -> its frame
  std::uint64_t in_flight_bytes_ = 0, frames_applied_ = 0;
  bool touched_image_ = false;
  bool mark_again_ = false;
  std::string error_code_, error_text_;
  std::optional<Instant> retry_at_;
};

}  // namespace deltarelay::relay
