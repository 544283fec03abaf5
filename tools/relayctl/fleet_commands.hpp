// The commands that ask a daemon or steer it. Each group has its own file; all need the clock that waiting takes.
#pragma once

namespace CLI {
class App;
}

namespace deltarelay::relayctl {

struct Context;
class Pace;

/// status, health, tree, nodes, node.
void add_look_commands(CLI::App& app, Context& context, Pace& pace);
/// versions, version.
void add_version_commands(CLI::App& app, Context& context);
/// publish, abort.
void add_publish_commands(CLI::App& app, Context& context, Pace& pace);
void add_wait_command(CLI::App& app, Context& context, Pace& pace);
void add_verify_command(CLI::App& app, Context& context, Pace& pace);

/// All of the above. `pace` lives as long as `app`.
void add_fleet_commands(CLI::App& app, Context& context, Pace& pace);

}  // namespace deltarelay::relayctl
