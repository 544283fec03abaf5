// relayctl: the operator's tool. Looks at the surroundings, gathers the command groups, runs what was asked.
#include <langinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "tools/relayctl/bench_commands.hpp"
#include "tools/relayctl/cert_commands.hpp"
#include "tools/relayctl/checkpoint_commands.hpp"
#include "tools/relayctl/command_line.hpp"
#include "tools/relayctl/completion_command.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/delta_commands.hpp"
#include "tools/relayctl/fleet_commands.hpp"
#include "tools/relayctl/pace.hpp"
#include "tools/relayctl/plan_commands.hpp"

namespace deltarelay::relayctl {

// Each command group has its own file; its line here and in CMakeLists.txt is all that binds it to this one.

namespace {

bool set_in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

Surroundings look_around() {
  const char* term = std::getenv("TERM");
  return Surroundings{
      .no_color = set_in_environment("NO_COLOR") || (term != nullptr && std::string_view(term) == "dumb"),
      .stdout_terminal = isatty(STDOUT_FILENO) == 1,
      .stderr_terminal = isatty(STDERR_FILENO) == 1,
      // A terminal without UTF-8 gets ASCII; a file or pipe gets UTF-8 whatever the locale of the caller.
      .utf8 = isatty(STDOUT_FILENO) == 0 || std::string_view(nl_langinfo(CODESET)) == "UTF-8",
  };
}

}  // namespace
}  // namespace deltarelay::relayctl

int main(int argc, char** argv) {
  using namespace deltarelay::relayctl;
  std::setlocale(LC_CTYPE, "");
  std::signal(SIGPIPE, SIG_IGN);  // a closed pager is seen as a failed write
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file past the limit on its size

  Context context;
  context.surroundings = look_around();
  CLI::App app{"Inspects and steers a mesh of relayd, and works on checkpoints, plans and certificates offline.",
               "relayctl"};
  add_global_options(app, context);
  add_checkpoint_commands(app, context);
  MachinePace pace;
  add_fleet_commands(app, context, pace);
  add_plan_commands(app, context);
  add_cert_commands(app, context);
  add_completion_command(app, context);
  add_delta_commands(app, context, pace);
  add_bench_commands(app, context);
  app.set_version_flag("--version", "relayctl " DELTARELAY_VERSION);

  return run_command_line(app, context, argc, argv);
}
