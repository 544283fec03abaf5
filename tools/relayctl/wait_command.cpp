// `wait`: for scripts. Ends when it is so (0), when it cannot become so any more (1), or when time is up (5).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "tools/relayctl/arguments.hpp"
#include "tools/relayctl/command_line.hpp"
#include "tools/relayctl/daemon.hpp"
#include "tools/relayctl/fleet_commands.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/pace.hpp"
#include "tools/relayctl/progress_line.hpp"
#include "tools/relayctl/wait_conditions.hpp"

namespace deltarelay::relayctl {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds interval{250};
constexpr milliseconds answer_within_min{1000};

struct WaitOptions {
  Awaited awaited;
  milliseconds within = 10min;
};

std::string_view where_to_look(Goal goal) {
  switch (goal) {
    case Goal::committed:
      return "relayctl status";
    case Goal::converged:
      return "relayctl tree";
    case Goal::healthy:
      return "relayctl health detail";
  }
  return "";
}

int print_reached(const Context& context, const Found& found, milliseconds took) {
  if (context.json()) {
    print_json(context, found.body);
  } else if (context.format == OutputFormat::name) {
    context.print(std::to_string(codec::raw(found.version)) + "\n");
  } else {
    context.print(fmt::format("{}, after {}\n", found.text, human_age(took)));
  }
  return to_int(ExitCode::ok);
}

int wait_for(const Context& context, Pace& pace, WaitOptions options) {
  const auto began = pace.now();
  const auto deadline = began + options.within;
  const auto left = [&] { return std::chrono::duration_cast<milliseconds>(deadline - pace.now()); };
  ProgressLine line(context, pace);
  std::string last = "no answer yet";
  for (bool first = true;; first = false) {
    // One answer may take what is left of the wait, but time enough to be given at all.
    const Daemon daemon(context, std::clamp(left(), std::min(answer_within_min, context.timeout), context.timeout));
    Found found = look_for(daemon, options.awaited);
    if (found.error && first && found.error->exit_code != ExitCode::timed_out) return fail(context, *found.error);
    if (first) {
      context.note(fmt::format(
          "waiting for {}: from {}, since {}, until {}", awaited_text(options.awaited), daemon.who(),
          format_time(pace.wall(), context.utc),
          format_time(pace.wall() + std::chrono::floor<std::chrono::seconds>(options.within), context.utc)));
    }
    if (found.reached || found.never) {
      line.end();
      if (found.never) return fail(context, *found.never);
      return print_reached(context, found, std::chrono::duration_cast<milliseconds>(pace.now() - began));
    }
    last = found.error ? found.error->what + ": " + found.error->why : found.text;
    line.show(last);
    if (left() <= 0ms || !pace.rest(std::min(interval, left()))) break;
  }
  line.end();
  return context.fail(ExitCode::timed_out, "timed out waiting for " + awaited_text(options.awaited),
                      fmt::format("after {}: {}", human_age(options.within), last),
                      where_to_look(options.awaited.goal));
}

}  // namespace

void add_wait_command(CLI::App& app, Context& context, Pace& pace) {
  static const std::map<std::string, Goal> goals{
      {"committed", Goal::committed}, {"converged", Goal::converged}, {"healthy", Goal::healthy}};
  auto options = std::make_shared<WaitOptions>();
  CLI::App* sub = app.add_subcommand("wait", "Wait until the fleet is so far; exit 5 when time is up");
  sub->add_option_function<std::string>(
         "GOAL", [options](const std::string& text) { options->awaited.goal = goals.at(text); },
         "committed: the root decided; converged: every node holds it; healthy: no check complains")
      ->check(one_of({"committed", "converged", "healthy"}))
      ->required();
  auto* version = add_version_argument(*sub, "--version", options->awaited.version,
                                       "this one or a later; by default the one in flight, else what is committed");
  auto* percent = sub->add_option_function<std::string>(
                         "--percent",
                         [options](const std::string& text) {
                           options->awaited.percent = parse_percent(text);
                           if (!options->awaited.percent) {
                             throw CLI::ValidationError("--percent", "\"" + text + "\" is no share within 0 and 100");
                           }
                         },
                         "of the nodes; by default 0 for committed and 100 for converged")
                      ->type_name("P");
  sub->add_option_function<std::string>(
         "--timeout",
         [options](const std::string& text) {
           const auto parsed = parse_duration(text);
           if (!parsed) {
             throw CLI::ValidationError("--timeout", "\"" + text + "\" is no duration like 500ms, 10s or 2m");
           }
           options->within = *parsed;
         },
         "how long to wait, 0 for one look")
      ->type_name("DURATION")
      ->default_str("10m");
  command(*sub, context, [&context, &pace, options, version, percent] {
    if (options->awaited.goal == Goal::healthy && (version->count() > 0 || percent->count() > 0)) {
      return context.fail(ExitCode::usage, "cannot wait for health of a version",
                          "--version and --percent go with committed and converged", "relayctl wait healthy");
    }
    return wait_for(context, pace, *options);
  });
}

}  // namespace deltarelay::relayctl
