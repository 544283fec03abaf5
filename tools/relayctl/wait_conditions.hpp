// What `relayctl wait` can wait for, as questions to the daemon: is it so by now, can it still become so, and if not
// yet, how far is it.
//
// Each question is a look at documents that the daemon made at one moment; nothing is remembered but the version that
// was found in flight at the first look, so that a later refit does not move the goal.
#pragma once

#include <optional>
#include <string>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/admin_client.hpp"

namespace deltarelay::relayctl {

class Daemon;

enum class Goal : std::uint8_t { committed, converged, healthy };

struct Awaited {
  Goal goal = Goal::committed;
  std::optional<relay::admin::Version> version;  ///< given, or set by the first look
  std::optional<double> percent;                 ///< of the nodes; by default 0 for committed, 100 for converged
};

struct Found {
  bool reached = false;
  std::string text;                  ///< how far it is; the result when reached
  std::string body;                  ///< the JSON of the document that says so
  relay::admin::Version version{};   ///< that the text speaks of
  std::optional<ClientError> error;  ///< no answer
  std::optional<ClientError> never;  ///< answered, and it cannot become so
};

/// May set `awaited.version`.
[[nodiscard]] Found look_for(const Daemon& daemon, Awaited& awaited);
/// `v1843 to be committed`, for "waiting for …" and "timed out waiting for …".
[[nodiscard]] std::string awaited_text(const Awaited& awaited);

/// How many rows hold at least `version`; a node that nobody reaches does not count, whatever it held.
[[nodiscard]] std::uint64_t holders(const relay::admin::NodesDocument& document, relay::admin::Version version);

}  // namespace deltarelay::relayctl
