// `publish` and `abort`: an operator starts or ends a refit. Only the root takes them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "tools/relayctl/arguments.hpp"
#include "tools/relayctl/daemon.hpp"
#include "tools/relayctl/fleet_commands.hpp"
#include "tools/relayctl/follow_refit.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/render_versions.hpp"

namespace deltarelay::relayctl {
namespace {

using namespace std::chrono_literals;
using relay::admin::PublishDocument;

// A dry run reads both checkpoints whole; --timeout overrules this.
constexpr auto dry_run_within = 30min;

struct PublishOptions {
  relay::admin::PublishRequest request;
  std::string dir;
  bool wait = false;
};

int print_accepted(const Context& context, const Answer<PublishDocument>& answer) {
  const PublishDocument& document = answer.document;
  if (context.json()) {
    print_json(context, answer.body);
  } else if (context.format == OutputFormat::name) {
    context.print(std::to_string(codec::raw(document.version)) + "\n");
  } else if (document.dry_run) {
    context.print(dry_run_text(document));
  } else {
    context.print(fmt::format("{}  accepted, base {}; `relayctl wait committed --version {}` waits for the decision\n",
                              version_text(document.version), version_text(document.base),
                              codec::raw(document.version)));
  }
  return to_int(ExitCode::ok);
}

int print_end(const Context& context, const RefitEnd& end) {
  if (end.error) return fail(context, *end.error);
  const relay::admin::VersionRow& row = end.document.version;
  const bool committed = row.result == "committed";
  if (context.json()) {
    print_json(context, relay::admin::to_json(end.document));
  } else if (committed && context.format == OutputFormat::name) {
    context.print(std::to_string(codec::raw(row.version)) + "\n");
  } else if (committed) {
    context.print(outcome_text(context, row));
  }
  if (committed) return to_int(ExitCode::ok);
  return context.fail(ExitCode::failed, fmt::format("{} was {}", version_text(row.version), row.result),
                      row.why.empty() ? "the root gave no reason" : row.why,
                      "relayctl tree --problems, and publish again once the cause is gone");
}

int publish(const Context& context, Pace& pace, PublishOptions options) {
  std::error_code failed;
  const auto dir = std::filesystem::absolute(options.dir, failed).lexically_normal();
  if (failed) {
    return context.fail(ExitCode::failed, "cannot find out where " + options.dir + " is", failed.message(),
                        "an absolute path");
  }
  options.request.dir = dir.string();
  const bool long_work = options.request.dry_run && !context.timeout_given;
  const auto within = long_work ? std::chrono::milliseconds(dry_run_within) : context.timeout;
  const Daemon asked(context, within);
  if (options.request.dry_run) {
    context.note(fmt::format("waiting for a dry run of {}: from {}, since {}, until {}", options.request.dir,
                             asked.who(), format_time(pace.wall(), context.utc),
                             format_time(pace.wall() + std::chrono::floor<std::chrono::seconds>(within), context.utc)));
  }
  const auto answer = asked.post<PublishDocument>("/v1/publish", options.request);
  if (answer.error) return fail(context, *answer.error);
  if (!options.wait || answer.document.dry_run) return print_accepted(context, answer);
  const Daemon daemon(context);
  context.note(fmt::format("waiting for {} (base {}): from {}, since {}, until the root decides",
                           version_text(answer.document.version), version_text(answer.document.base), daemon.who(),
                           format_time(pace.wall(), context.utc)));
  return print_end(context, follow_refit(context, pace, daemon, answer.document.version));
}

int abort_refit(const Context& context, relay::admin::Version version) {
  const relay::admin::AbortRequest request{version};
  const auto answer = Daemon(context).post<relay::admin::AbortDocument>("/v1/abort", request);
  if (answer.error) return fail(context, *answer.error);
  const auto number = codec::raw(answer.document.version);
  if (context.json()) {
    print_json(context, answer.body);
  } else if (context.format == OutputFormat::name) {
    context.print(std::to_string(number) + "\n");
  } else {
    context.print(fmt::format("{}  abort asked for; `relayctl version {}` shows what was decided\n",
                              version_text(answer.document.version), number));
  }
  return to_int(ExitCode::ok);
}

}  // namespace

void add_publish_commands(CLI::App& app, Context& context, Pace& pace) {
  auto options = std::make_shared<PublishOptions>();
  CLI::App* publish_command = app.add_subcommand("publish", "On the root: bring the fleet to the checkpoint in DIR");
  publish_command->add_option("DIR", options->dir, "a safetensors directory on the root's host")->required();
  add_version_argument(*publish_command, "--version", options->request.version,
                       "the new version; by default one more than the highest used");
  publish_command->add_option("--policy", options->request.policy, "all, quorum or quorum:0.95; by default the root's");
  auto* dry_run =
      publish_command->add_flag("--dry-run", options->request.dry_run, "say what it would send; send nothing");
  publish_command->add_flag("--wait", options->wait, "show progress and end with the result; exit 1 when aborted")
      ->excludes(dry_run);
  command(*publish_command, context, [&context, &pace, options] { return publish(context, pace, *options); });

  auto version = std::make_shared<std::optional<relay::admin::Version>>();
  CLI::App* abort_command =
      app.add_subcommand("abort", "End a refit that is not decided yet; the fleet keeps its version");
  add_version_argument(*abort_command, "VERSION", *version, "the version in flight")->required();
  command(*abort_command, context, [&context, version] { return abort_refit(context, **version); });
}

}  // namespace deltarelay::relayctl
