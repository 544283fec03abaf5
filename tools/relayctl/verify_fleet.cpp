#include "tools/relayctl/verify_fleet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/relayctl/daemon.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/progress_line.hpp"
#include "tools/relayctl/render_verify.hpp"

namespace deltarelay::relayctl {
namespace {

using namespace std::chrono_literals;
using relay::admin::VerifyDocument;
using VerifyAnswer = Answer<VerifyDocument>;

constexpr auto first_interval = 50ms;  // small images are read by then
constexpr auto interval = 500ms;
constexpr auto silent_max = 30s;  // a daemon that is busy answers within that; one that was restarted knows no round

ClientError lost_round(std::string why) {
  ClientError error;
  error.exit_code = ExitCode::precondition;
  error.what = "lost sight of the verification";
  error.why = std::move(why);
  error.try_next = "relayctl verify again when the other has ended";
  return error;
}

class Follower {
 public:
  Follower(const Context& context, Pace& pace, const Daemon& daemon, VerifyAnswer first)
      : context_(context), pace_(pace), daemon_(daemon), line_(context, pace), last_(std::move(first)) {}

  /// The last document: done, or as far as it came by `until`.
  VerifyAnswer run(Pace::Instant until) {
    Pace::Instant heard_at = pace_.now();
    std::chrono::milliseconds rest = first_interval;
    while (!last_.document.done && pace_.now() < until) {
      line_.show(verify_progress_text(last_.document));
      if (!pace_.rest(rest)) break;
      rest = std::min<std::chrono::milliseconds>(interval, rest * 2);
      VerifyAnswer next = daemon_.get<VerifyDocument>("/v1/verify");
      if (!next.error && next.document.round != last_.document.round)
        next.error = lost_round("a newer one has replaced it");
      else if (next.error && next.error->http_status == 404)
        next.error = lost_round("relayd was restarted in the middle of it");
      else if (next.error && pace_.now() - heard_at < silent_max)
        continue;
      if (next.error) return next;
      heard_at = pace_.now();
      last_ = std::move(next);
    }
    return std::move(last_);
  }

 private:
  const Context& context_;
  Pace& pace_;
  const Daemon& daemon_;
  ProgressLine line_;
  VerifyAnswer last_;
};

void print(const Context& context, const VerifyAnswer& answer) {
  if (context.json()) {
    print_json(context, answer.body);
  } else if (context.format == OutputFormat::name) {
    for (const auto& row : answer.document.nodes)
      if (row.result != "ok") context.print(row.node + "\n");
  } else {
    context.print(verify_text(context, answer.document));
  }
}

}  // namespace

int verify_fleet(const Context& context, Pace& pace, bool deep, std::chrono::milliseconds within) {
  const Daemon daemon(context, std::min(within, std::max<std::chrono::milliseconds>(10s, context.timeout)));
  const Pace::Instant until = pace.now() + within;
  context.note(
      fmt::format("waiting for every image to be compared with its ledger: by {} and all below it, since {}, until {}",
                  daemon.who(), format_time(pace.wall(), context.utc),
                  format_time(pace.wall() + std::chrono::floor<std::chrono::seconds>(within), context.utc)));
  relay::admin::VerifyRequest request;
  request.deep = deep;
  request.wait = false;
  VerifyAnswer answer = daemon.post<VerifyDocument>("/v1/verify", request);
  if (!answer.error) answer = Follower(context, pace, daemon, std::move(answer)).run(until);
  if (answer.error) return fail(context, *answer.error);
  print(context, answer);
  for (const VerifyComplaint& complaint : verify_complaints(answer.document))
    context.fail(complaint.code, complaint.what, complaint.why, complaint.try_next);
  return to_int(verify_exit(answer.document));
}

}  // namespace deltarelay::relayctl
