// `relayctl verify DIR`: an image on this host against the ledger beside it, without a daemon.
//
// Offline and read-only; works beside a running relayd, whose refit in progress then shows as differing blocks. The
// command itself is registered with the others that may also ask a daemon.
#pragma once

#include <filesystem>
#include <optional>

namespace deltarelay::relayctl {

struct Context;

/// Compares the image in `dir` with the ledger in `state` and prints what was found, as text or JSON. Without `state`
/// only the checkpoint's own rules are checked. `deep` reads and hashes every block; its digest can be compared
/// between hosts. Result: 0 the image is what the ledger states, 1 it is not, 3 no valid checkpoint, 6 the ledger
/// states no committed version.
int verify_local(const Context& context, const std::filesystem::path& dir,
                 const std::optional<std::filesystem::path>& state, bool deep);

}  // namespace deltarelay::relayctl
