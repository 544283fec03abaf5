// See fleet_commands.hpp.
#include "tools/relayctl/fleet_commands.hpp"

namespace deltarelay::relayctl {

void add_fleet_commands(CLI::App& app, Context& context, Pace& pace) {
  add_look_commands(app, context, pace);
  add_version_commands(app, context);
  add_publish_commands(app, context, pace);
  add_wait_command(app, context, pace);
  add_verify_command(app, context, pace);
}

}  // namespace deltarelay::relayctl
