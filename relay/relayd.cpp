// relayd: the daemon of one host. Everything it does is in relay/shell; this reads the command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "config/nearest_name.hpp"
#include "config/relayd_config.hpp"
#include "config/yaml_doc.hpp"
#include "relay/shell/daemon.hpp"

namespace {
constexpr int exit_failed = 1, exit_usage = 2, exit_invalid = 3;

/// A word that nothing takes explains more than CLI11's account of what is missing because of it.
std::string why_unread(const CLI::App& app, const CLI::ParseError& wrong) {
  const std::vector<std::string> left = app.remaining();
  if (left.empty()) return wrong.what();
  const std::string word = left.front().substr(0, left.front().find('='));
  if (word.empty() || word.front() != '-') return "unexpected argument " + deltarelay::config::shown(word);
  return "unknown option " + deltarelay::config::shown(word) +
         deltarelay::config::did_you_mean(word, {"--config", "--check", "--version", "--help"});
}
}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Receives weight deltas from a parent, verifies, forwards and applies them.", "relayd"};
  std::string config_file;
  bool check = false;
  app.add_option("--config", config_file, "relayd.yaml of this host")->required()->type_name("FILE");
  app.add_flag(
      "--check", check,
      "check configuration, certificates, image and plan, print findings and the effective configuration, and end");
  app.set_version_flag("--version", "relayd " DELTARELAY_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "error: cannot read the command line: %s. Try: relayd --help\n",
                 why_unread(app, wrong).c_str());
    return exit_usage;
  }
  try {
    deltarelay::relay::Prepared prepared = deltarelay::relay::prepare_daemon(config_file);
    if (!prepared.findings.empty()) {
      std::fputs(prepared.findings.text().c_str(), stderr);
      return exit_invalid;
    }
    if (check) {
      std::fputs(deltarelay::config::to_yaml(*prepared.config).c_str(), stdout);
      return 0;
    }
    return deltarelay::relay::run_daemon(std::move(prepared));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: relayd ends: %s. Try: report it with the log before this line\n", error.what());
    return exit_failed;
  }
}
