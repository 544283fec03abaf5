// `verify`: images against ledgers, of every node through the daemon, or with DIR of one directory without a daemon.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "tools/relayctl/fleet_commands.hpp"
#include "tools/relayctl/pace.hpp"
#include "tools/relayctl/verify_fleet.hpp"
#include "tools/relayctl/verify_local.hpp"

namespace deltarelay::relayctl {
namespace {

using namespace std::chrono_literals;

// Every byte of a terabyte from a slow disk; --timeout overrules both.
constexpr auto deep_within = 2h;
constexpr auto shallow_within = 1min;

struct VerifyOptions {
  std::string dir;
  std::string state;
  bool deep = false;
};

int verify(const Context& context, Pace& pace, const VerifyOptions& options) {
  if (options.dir.empty()) {
    const auto usual =
        options.deep ? std::chrono::milliseconds(deep_within) : std::chrono::milliseconds(shallow_within);
    return verify_fleet(context, pace, options.deep, context.timeout_given ? context.timeout : usual);
  }
  std::optional<std::filesystem::path> state;
  if (!options.state.empty()) state = options.state;
  return verify_local(context, options.dir, state, options.deep);
}

}  // namespace

void add_verify_command(CLI::App& app, Context& context, Pace& pace) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* sub = app.add_subcommand(
      "verify", "Images against ledgers: of every node below the daemon (on the root: all), or of DIR without one");
  auto* dir = sub->add_option("DIR", options->dir, "an image on this host; the daemon is not asked");
  sub->add_option("--state", options->state, "state_dir of the image, which holds its ledger")->needs(dir);
  sub->add_flag("--deep", options->deep, "read and hash every byte, not only sizes, headers and the ledger itself");
  command(*sub, context, [&context, &pace, options] { return verify(context, pace, *options); });
}

}  // namespace deltarelay::relayctl
