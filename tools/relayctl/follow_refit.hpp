// Follows one refit from the moment it was accepted to its end.
//
// The end is: aborted; or committed and every node that can has followed. A node that is away when the fleet commits
// may stay away for days, so after the decision it is waited for only while others still arrive.
#pragma once

#include <optional>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/admin_client.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/pace.hpp"

namespace deltarelay::relayctl {

class Daemon;

/// Either what became of the version or why that is not known.
struct RefitEnd {
  relay::admin::VersionDocument document;
  std::optional<ClientError> error;
};

/// Shows progress on stderr. Bounded by the daemon's own time-outs, which decide every refit; a daemon that does not
/// answer, or that no longer knows of the version, is given up on after a while.
[[nodiscard]] RefitEnd follow_refit(const Context& context, Pace& pace, const Daemon& daemon,
                                    relay::admin::Version version);

}  // namespace deltarelay::relayctl
