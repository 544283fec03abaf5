// `relayctl cert …`: makes a mesh's authority and its nodes' certificates, shows and checks them. Offline.
#pragma once

namespace CLI {
class App;
}

namespace deltarelay::relayctl {

struct Context;

void add_cert_commands(CLI::App& app, Context& context);

}  // namespace deltarelay::relayctl
