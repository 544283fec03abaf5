// See follow_refit.hpp.
#include "tools/relayctl/follow_refit.hpp"

#include <chrono>

#include "tools/relayctl/daemon.hpp"
#include "tools/relayctl/progress_line.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/render_versions.hpp"

namespace deltarelay::relayctl {
namespace {

using namespace std::chrono_literals;
using relay::admin::RefitDocument;
using relay::admin::VersionDocument;

constexpr auto interval = 200ms;
constexpr auto silent_max = 30s;      // a root that restarts is back by then
constexpr auto unknown_max = 10s;     // between accepting a refit and showing it
constexpr auto stragglers_max = 10s;  // without one more node committed

class Follower {
 public:
  Follower(const Context& context, Pace& pace, const Daemon& daemon, relay::admin::Version version)
      : pace_(pace),
        daemon_(daemon),
        context_(context),
        line_(context, pace),
        version_(version),
        heard_at_(pace.now()),
        known_at_(pace.now()) {}

  RefitEnd run() {
    for (;;) {
      if (auto end = look()) return std::move(*end);
      if (!pace_.rest(interval)) return failed(ExitCode::timed_out, "the wait was ended before the refit was decided");
    }
  }

 private:
  std::optional<RefitEnd> look() {
    const auto answer = daemon_.get<RefitDocument>("/v1/refit");
    if (answer.error) return on_silence(*answer.error);
    heard_at_ = pace_.now();
    if (answer.document.refit && answer.document.refit->version == version_) {
      known_at_ = heard_at_;
      return on_refit(answer.document);
    }
    return on_other_refit();
  }

  std::optional<RefitEnd> on_refit(const RefitDocument& document) {
    line_.show(progress_text(context_, document));
    if (document.result.empty()) return std::nullopt;
    const bool closed = document.result != "committed" || document.refit->phase == "CLOSED" ||
                        document.nodes_committed >= document.nodes_total;
    if (!changed_ || document.nodes_committed != changed_->nodes_committed || closed) {
      changed_ = document;
      changed_at_ = pace_.now();
    }
    if (!closed && pace_.now() - changed_at_ < stragglers_max) return std::nullopt;
    // The last change, not the last look: our waiting for a node that is gone is no part of the commit's time.
    RefitEnd end;
    end.document.at = changed_->at;
    end.document.version = row_of(*changed_);
    return end;
  }

  /// Not yet shown, already replaced by the next one, or lost in a restart: history knows what was decided.
  std::optional<RefitEnd> on_other_refit() {
    const auto answer = daemon_.get<VersionDocument>("/v1/versions/" + std::to_string(codec::raw(version_)));
    if (!answer.error && !answer.document.version.result.empty()) return RefitEnd{answer.document, std::nullopt};
    if (pace_.now() - known_at_ < unknown_max) return std::nullopt;
    return failed(ExitCode::failed,
                  "relayd does not know of this version any more; it may have been restarted before the "
                  "refit was durable, which counts as aborted");
  }

  std::optional<RefitEnd> on_silence(const ClientError& error) {
    line_.show("no answer from " + daemon_.who() + ": " + error.why);
    if (pace_.now() - heard_at_ < silent_max) return std::nullopt;
    return failed(error.exit_code, error.what + ": " + error.why);
  }

  [[nodiscard]] RefitEnd failed(ExitCode code, const std::string& why) const {
    RefitEnd end;
    ClientError& error = end.error.emplace();
    error.exit_code = code;
    error.what = "lost sight of " + version_text(version_);
    error.why = why;
    error.try_next = "relayctl version " + std::to_string(codec::raw(version_));
    return end;
  }

  Pace& pace_;
  const Daemon& daemon_;
  const Context& context_;
  ProgressLine line_;
  relay::admin::Version version_;
  Pace::Instant heard_at_, known_at_, changed_at_{};
  std::optional<RefitDocument> changed_;  ///< the document that last said something new of the nodes after the decision
};

}  // namespace

RefitEnd follow_refit(const Context& context, Pace& pace, const Daemon& daemon, relay::admin::Version version) {
  return Follower(context, pace, daemon, version).run();
}

}  // namespace deltarelay::relayctl
