// The daemon's side of the admin API: each route of docs/admin-api.md, answered from the shell.
//
// Handlers come on the server's threads and go to the core strand or, when they must read files, to the shell's
// readers.
#pragma once

#include "relay/admin/admin_server.hpp"
#include "relay/shell/shell.hpp"

namespace deltarelay::relay {

/// Adds every route. `shell` must outlive the server.
void add_admin_routes(admin::AdminServer& server, Shell& shell);

}  // namespace deltarelay::relay
