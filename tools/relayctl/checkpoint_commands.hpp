// `relayctl checkpoint …`: makes synthetic checkpoints and training steps of them, compares and describes any. Offline.
#pragma once

namespace CLI {
class App;
}

namespace deltarelay::relayctl {

struct Context;

void add_checkpoint_commands(CLI::App& app, Context& context);

}  // namespace deltarelay::relayctl
