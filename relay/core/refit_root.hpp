// The root's side of a refit: from an operator's publish to the decision that moves the fleet.
//
// Layer: relay/core. States (design.md section 7):
//
//   idle -> saving_manifest -> distributing -> preparing -> deciding -> closing -> idle
//
// The manifest is durable before the first frame leaves, the decision before any COMMIT or ABORT does. Nodes are counted, not
// messages: the input is the newest record of each node that the plan expects.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "relay/core/actions.hpp"
#include "relay/core/log_index.hpp"

namespace deltarelay::relay {

/// No version is above: a number that leaves no room would be the last one ever.
inline constexpr Version version_max{(std::uint64_t{1} << 63) - 1};

/// Who must be prepared before a refit commits.
struct CommitPolicy {
  double quorum = 1.0;               ///< share of the expected nodes; 1: all
  bool commit_if_quorum = false;     ///< at the time-out: commit when `timeout_quorum` is met, else abort
  double timeout_quorum = 0.95;
  Duration prepare_timeout = std::chrono::minutes(10);  ///< without any progress
};
/// "all", "quorum" (the configured share) or "quorum:0.95".
[[nodiscard]] std::optional<CommitPolicy> parse_policy(const std::string& text, const CommitPolicy& configured);
[[nodiscard]] std::string policy_text(const CommitPolicy& policy);

/// What is known of one refit: shown while it runs, kept in history afterwards.
struct RefitSummary {
  enum class Phase : std::uint8_t { none, open, distributing, preparing, deciding, committed, aborted };
  Version version{}, base{};
  Phase phase = Phase::none;
  std::string directory, policy, why;
  std::optional<Instant> opened, first_record, encoded, prepared, decided, closed;
  std::uint64_t prepared_nodes = 0, failed_nodes = 0, expected_nodes = 0, committed_nodes = 0;
  std::vector<std::string> left_out;  ///< not prepared when the decision was made
};

class RefitRoot {
 public:
  RefitRoot(CommitPolicy policy, std::vector<std::string> expected, Version highest_used)
      : configured_(policy), policy_(policy), expected_(std::move(expected)), highest_used_(highest_used) {}

  void on(const PublishRequested& event, Version committed, bool ready, Instant now, Actions& out);
  void on(const AbortRequested& event, Sequence next, Instant now, Actions& out);
  void on(const ManifestSaved& event, Instant now, Actions& out);
  void on(const EncodeEnded& event, Sequence next, Instant now, Actions& out);
  void on(const DecisionSaved& event, Instant now, Actions& out);
  /// A record was appended to the refit's log. `next`: the one after it.
  void record_appended(const codec::RecordPtr& record, Sequence next, Instant now, Actions& out);
  /// Counts the nodes; decides when the policy is met, cannot be met any more, or time is up. `refit`: of the log, null
  /// when it is not there.
  void evaluate(const std::map<std::string, NodeRecord>& nodes, const RefitEntry* refit, Instant now, Actions& out);
  /// A refit that a previous process decided: the decision stands.
  void resume(Version version, Version base, bool decision, Sequence next, Instant now, Actions& out);
  /// A refit that a previous process left open.
  void presume_aborted(Version version, Version base, Instant now);
  /// Begins and aborts a refit from `base` that changes nothing: to whoever is in an older one it says that this is
  /// over. REQUIRES !busy().
  void open_void(Version orphan, Version base, Instant now, Actions& out);
  /// Somebody holds this version or receives it, so its number is used: after a ledger was lost, the fleet knows better.
  void note_used(Version version);

  [[nodiscard]] const RefitSummary& summary() const noexcept { return summary_; }
  [[nodiscard]] const std::vector<std::string>& expected() const noexcept { return expected_; }
  [[nodiscard]] bool busy() const noexcept {
    return summary_.phase != RefitSummary::Phase::none && summary_.phase != RefitSummary::Phase::committed &&
           summary_.phase != RefitSummary::Phase::aborted;
  }
  /// The decision is to commit, and its record is not in the log yet.
  [[nodiscard]] bool committing() const noexcept {
    return summary_.phase == RefitSummary::Phase::deciding && deciding_commit_;
  }
  [[nodiscard]] const CommitPolicy& policy() const noexcept { return policy_; }

 private:
  void decide(bool commit, Sequence next, std::string why, Actions& out);
  void count(const std::map<std::string, NodeRecord>& nodes);

  CommitPolicy configured_, policy_;
  std::vector<std::string> expected_;
  Version highest_used_{};
  RefitSummary summary_;
  std::optional<codec::Digest> target_;  // of the refit's END
  bool void_ = false;
  std::uint64_t publish_request_ = 0, progress_ = 0;
  Instant progress_at_{};
  bool deciding_commit_ = false, stop_wanted_ = false;
  std::string stop_why_;
  std::optional<Instant> retry_decision_at_;
};

}  // namespace deltarelay::relay
