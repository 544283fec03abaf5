// `relayctl plan …`: checks a topology.yaml and shows the plan that every node would compute from it. Offline.
#pragma once

namespace CLI {
class App;
}

namespace deltarelay::relayctl {

struct Context;

void add_plan_commands(CLI::App& app, Context& context);

}  // namespace deltarelay::relayctl
