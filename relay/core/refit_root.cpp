#include "relay/core/refit_root.hpp"

#include <fmt/format.h>

#include <cassert>
#include <charconv>
#include <cmath>

namespace deltarelay::relay {
using Phase = RefitSummary::Phase;

std::optional<CommitPolicy> parse_policy(const std::string& text, const CommitPolicy& configured) {
  CommitPolicy policy = configured;
  if (text.empty() || text == "quorum") return policy;
  if (text == "all") {
    policy.quorum = 1.0;
    return policy;
  }
  constexpr std::string_view prefix = "quorum:";
  if (text.rfind(prefix, 0) != 0) return std::nullopt;
  double share = 0;
  const char* begin = text.data() + prefix.size();
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(begin, end, share);
  if (error != std::errc{} || stop != end || !(share > 0.0 && share <= 1.0)) return std::nullopt;
  policy.quorum = share;
  return policy;
}

std::string policy_text(const CommitPolicy& policy) {
  return policy.quorum >= 1.0 ? std::string("all") : fmt::format("quorum {:g}", policy.quorum);
}

void RefitRoot::on(const PublishRequested& event, Version committed, bool ready, Instant now, Actions& out) {
  const auto refuse = [&](std::string code, std::string text) {
    out.push_back(Answer{event.request, Version{}, std::move(code), std::move(text)});
  };
  if (busy()) return refuse("CONFLICT", fmt::format("refit v{} is still in flight", codec::raw(summary_.version)));
  if (!ready) return refuse("NOT_READY", "the root's image is not at a committed version yet");
  auto policy = parse_policy(event.policy, configured_);
  if (!policy) return refuse("USAGE", fmt::format("policy \"{}\" is not all, quorum or quorum:SHARE", event.policy));
  const Version floor = std::max(highest_used_, committed);
  const Version version = event.version.value_or(codec::next(floor));
  if (version > version_max)
    return refuse("USAGE", fmt::format("version v{} is above v{}, the highest there can be", codec::raw(version),
                                       codec::raw(version_max)));
  if (version <= floor)
    return refuse("CONFLICT", fmt::format("version v{} is not above v{}, the highest used so far; versions are never used twice",
                                          codec::raw(version), codec::raw(floor)));
  policy_ = *policy;
  highest_used_ = version;
  summary_ = RefitSummary{};
  summary_.version = version;
  summary_.base = committed;
  summary_.phase = Phase::open;
  summary_.directory = event.directory;
  summary_.policy = policy_text(policy_);
  summary_.opened = now;
  publish_request_ = event.request;
  progress_at_ = now;
  progress_ = 0;
  stop_wanted_ = void_ = false;
  target_.reset();
  out.push_back(SaveManifest{version, committed});
}

void RefitRoot::open_void(Version orphan, Version base, Instant now, Actions& out) {
  assert(!busy());
  highest_used_ = codec::next(std::max({highest_used_, base, orphan}));
  summary_ = RefitSummary{};
  summary_.version = highest_used_;
  summary_.base = base;
  summary_.phase = Phase::open;
  summary_.policy = policy_text(policy_);
  summary_.why = fmt::format("it only ends v{}, which was left open", codec::raw(orphan));
  summary_.opened = now;
  publish_request_ = 0;
  stop_wanted_ = false;
  void_ = true;
  target_.reset();
  out.push_back(SaveManifest{summary_.version, base});
}

void RefitRoot::note_used(Version version) {
  // What is far out of reach is no number that a root gave, and must not use up those that are left.
  constexpr std::uint64_t plausible_step = std::uint64_t{1} << 32;
  if (version > highest_used_ && codec::raw(version) - codec::raw(highest_used_) <= plausible_step)
    highest_used_ = std::min(version, version_max);
}

void RefitRoot::on(const AbortRequested& event, Sequence next, Instant, Actions& out) {
  if (!busy() || event.version != summary_.version) {
    out.push_back(Answer{event.request, event.version, "NO_SUCH_REFIT", fmt::format("no refit v{} is in flight", codec::raw(event.version))});
    return;
  }
  if (summary_.phase == Phase::deciding || void_) {
    out.push_back(Answer{event.request, event.version, "CONFLICT", "its decision is already being written; undo it with a rollback"});
    return;
  }
  out.push_back(Answer{event.request, event.version, "", ""});
  if (summary_.phase == Phase::preparing) return decide(false, next, event.why, out);
  // Records are still being produced: stop the encoder first, so that ABORT is the last record of the log.
  stop_wanted_ = true;
  stop_why_ = event.why;
  if (summary_.phase == Phase::distributing) out.push_back(StopEncode{summary_.version});
}

void RefitRoot::on(const ManifestSaved& event, Instant now, Actions& out) {
  if (summary_.phase != Phase::open || event.version != summary_.version) return;
  if (!event.error_code.empty()) {
    summary_.phase = Phase::aborted;
    summary_.why = event.error_text;
    summary_.closed = now;
    out.push_back(Answer{publish_request_, event.version, event.error_code, event.error_text});
    return;
  }
  summary_.phase = Phase::distributing;
  if (void_) return out.push_back(SealBegin{summary_.version, summary_.base});
  out.push_back(Answer{publish_request_, event.version, "", ""});
  out.push_back(StartEncode{summary_.version, summary_.base, summary_.directory});
  if (stop_wanted_) out.push_back(StopEncode{summary_.version});
}

void RefitRoot::record_appended(const codec::RecordPtr& record, Sequence next, Instant now, Actions& out) {
  if (record->header.version != summary_.version) return;
  progress_at_ = now;
  if (!summary_.first_record) summary_.first_record = now;
  if (void_ && summary_.phase == Phase::distributing) decide(false, next, summary_.why, out);
}

void RefitRoot::on(const EncodeEnded& event, Sequence next, Instant now, Actions& out) {
  if (summary_.phase != Phase::distributing || event.version != summary_.version) return;
  progress_at_ = now;
  if (stop_wanted_ || !event.error_code.empty()) {
    const std::string why = stop_wanted_ ? stop_why_ : event.error_code + ": " + event.error_text;
    if (codec::raw(next) == 0) {  // nothing left: the refit ends without a trace in any log
      summary_.phase = Phase::aborted;
      summary_.why = why;
      summary_.closed = now;
      return;
    }
    return decide(false, next, why, out);
  }
  summary_.encoded = now;
  summary_.phase = Phase::preparing;
}

void RefitRoot::count(const std::map<std::string, NodeRecord>& nodes) {
  summary_.expected_nodes = expected_.size();
  summary_.prepared_nodes = summary_.failed_nodes = summary_.committed_nodes = 0;
  summary_.left_out.clear();
  for (const std::string& name : expected_) {
    auto found = nodes.find(name);
    const bool known = found != nodes.end() && found->second.reachable;
    const bool committed =
        known && target_ && found->second.committed == summary_.version && found->second.image == *target_;
    const bool prepared = committed || (known && target_ && found->second.receiving == summary_.version &&
                                        found->second.target == *target_ &&
                                        (found->second.state == NodeState::prepared || found->second.state == NodeState::committing));
    summary_.committed_nodes += committed;
    summary_.prepared_nodes += prepared;
    if (known && found->second.state == NodeState::failed) ++summary_.failed_nodes;
    if (!prepared) summary_.left_out.push_back(name);
  }
}

void RefitRoot::evaluate(const std::map<std::string, NodeRecord>& nodes, const RefitEntry* refit, Instant now,
                         Actions& out) {
  const Sequence next = refit != nullptr ? refit->next_sequence() : Sequence{};
  if (refit != nullptr && refit->end_record) target_ = refit->target;
  if (summary_.phase == Phase::committed && summary_.closed) return;
  if (summary_.phase == Phase::deciding && retry_decision_at_ && now >= *retry_decision_at_)
    return decide(deciding_commit_, next, summary_.why, out);
  if (summary_.phase == Phase::committed || summary_.phase == Phase::aborted) {
    const std::vector<std::string> left_out = summary_.left_out;
    count(nodes);
    summary_.left_out = left_out;
    if (!summary_.closed && summary_.committed_nodes == summary_.expected_nodes) summary_.closed = now;
    return;
  }
  if (summary_.phase != Phase::preparing) return;
  count(nodes);
  std::uint64_t progress = summary_.prepared_nodes;
  for (const auto& [name, record] : nodes) progress += record.frames_applied + record.frames_received + record.sync_blocks_done;
  if (progress != progress_) {
    progress_ = progress;
    progress_at_ = now;
  }
  const double share = summary_.expected_nodes == 0
                           ? 1.0
                           : static_cast<double>(summary_.prepared_nodes) / static_cast<double>(summary_.expected_nodes);
  if (share >= policy_.quorum) {
    summary_.prepared = now;
    return decide(true, next, "", out);
  }
  if (now - progress_at_ < policy_.prepare_timeout) return;
  if (policy_.commit_if_quorum && share >= policy_.timeout_quorum) {
    summary_.prepared = now;
    return decide(true, next, "prepare timed out; the time-out quorum is met", out);
  }
  decide(false, next,
         fmt::format("prepare timed out: {}/{} nodes prepared and no progress for {} s; first node lacking: {}", summary_.prepared_nodes,
                     summary_.expected_nodes, std::chrono::duration_cast<std::chrono::seconds>(policy_.prepare_timeout).count(),
                     summary_.left_out.empty() ? "none" : summary_.left_out.front()),
         out);
}

void RefitRoot::decide(bool commit, Sequence next, std::string why, Actions& out) {
  summary_.phase = Phase::deciding;
  summary_.why = std::move(why);
  deciding_commit_ = commit;
  retry_decision_at_.reset();
  out.push_back(SaveDecision{summary_.version, commit, next, summary_.why});
}

void RefitRoot::on(const DecisionSaved& event, Instant now, Actions& out) {
  if (summary_.phase != Phase::deciding) return;
  if (!event.error_code.empty()) {
    retry_decision_at_ = now + std::chrono::seconds(1);
    out.push_back(Note{Note::Level::error, event.error_code, "the decision could not be saved: " + event.error_text + "; tried again"});
    return;
  }
  summary_.phase = deciding_commit_ ? Phase::committed : Phase::aborted;
  summary_.decided = now;
  if (!deciding_commit_) summary_.closed = now;
}

void RefitRoot::presume_aborted(Version version, Version base, Instant now) {
  summary_ = RefitSummary{};
  summary_.version = version;
  summary_.base = base;
  summary_.phase = Phase::aborted;
  summary_.why = "the root restarted before the decision";
  summary_.opened = summary_.decided = summary_.closed = now;
  summary_.policy = policy_text(policy_);
  highest_used_ = std::max(highest_used_, version);
}

void RefitRoot::resume(Version version, Version base, bool decision, Sequence next, Instant now, Actions& out) {
  summary_ = RefitSummary{};
  summary_.version = version;
  summary_.base = base;
  summary_.opened = now;
  summary_.policy = policy_text(policy_);
  highest_used_ = std::max(highest_used_, version);
  decide(decision, next, "decided before the root restarted", out);
}

}  // namespace deltarelay::relay
