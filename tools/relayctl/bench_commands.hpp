// `relayctl bench …`: what this machine can do, measured on work that it makes itself.
#pragma once

namespace CLI {
class App;
}

namespace deltarelay::relayctl {

struct Context;

void add_bench_commands(CLI::App& app, Context& context);

}  // namespace deltarelay::relayctl
