// `verify`: images against ledgers, of every node through the daemon, or with DIR of one directory without a daemon.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "tools/relayctl/daemon.hpp"
#include "tools/relayctl/fleet_commands.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/pace.hpp"
#include "tools/relayctl/render_verify.hpp"
#include "tools/relayctl/verify_local.hpp"

namespace deltarelay::relayctl {
namespace {

using namespace std::chrono_literals;
using relay::admin::VerifyDocument;

// Every byte of a terabyte from a slow disk; --timeout overrules both.
constexpr auto deep_within = 2h;
constexpr auto shallow_within = 1min;

struct VerifyOptions {
  std::string dir;
  std::string state;
  bool deep = false;
};

int verify_fleet(const Context& context, const Pace& pace, bool deep) {
  const auto usual = deep ? std::chrono::milliseconds(deep_within) : std::chrono::milliseconds(shallow_within);
  const auto within = context.timeout_given ? context.timeout : usual;
  const Daemon daemon(context, within);
  context.note(fmt::format("waiting for the image of this node to be verified: by {}, since {}, until {}", daemon.who(),
                           format_time(pace.wall(), context.utc),
                           format_time(pace.wall() + std::chrono::floor<std::chrono::seconds>(within), context.utc)));
  const auto answer = daemon.post<VerifyDocument>("/v1/verify", relay::admin::VerifyRequest{deep});
  if (answer.error) return fail(context, *answer.error);
  if (context.json()) {
    print_json(context, answer.body);
  } else if (context.format == OutputFormat::name) {
    for (const auto& row : answer.document.nodes) {
      if (row.result != "ok") context.print(row.node + "\n");
    }
  } else {
    context.print(verify_text(context, answer.document));
  }
  return to_int(verify_exit(answer.document));
}

int verify(const Context& context, const Pace& pace, const VerifyOptions& options) {
  if (options.dir.empty()) return verify_fleet(context, pace, options.deep);
  std::optional<std::filesystem::path> state;
  if (!options.state.empty()) state = options.state;
  return verify_local(context, options.dir, state, options.deep);
}

}  // namespace

void add_verify_command(CLI::App& app, Context& context, Pace& pace) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* sub =
      app.add_subcommand("verify", "Image against ledger: of the daemon that is asked, or of DIR without one");
  auto* dir = sub->add_option("DIR", options->dir, "an image on this host; the daemon is not asked");
  sub->add_option("--state", options->state, "state_dir of the image, which holds its ledger")->needs(dir);
  sub->add_flag("--deep", options->deep, "read and hash every byte");
  command(*sub, context, [&context, &pace, options] { return verify(context, pace, *options); });
}

}  // namespace deltarelay::relayctl
