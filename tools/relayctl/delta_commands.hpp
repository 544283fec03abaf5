// `relayctl delta …`: refits as files. Encodes, applies and explains them without a daemon or a network.
#pragma once

namespace CLI {
class App;
}

namespace deltarelay::relayctl {

struct Context;
class Pace;

/// `pace` outlives the command.
void add_delta_commands(CLI::App& app, Context& context, Pace& pace);

}  // namespace deltarelay::relayctl
