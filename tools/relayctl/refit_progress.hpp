// How far a refit is and how long it still takes, from what the root says of it. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

/// A share of the frames known so far as a share of the whole refit: while the root still encodes it is scaled by what
/// it has read, or the figure would start at 100 and fall.
[[nodiscard]] double whole_percent(const relay::admin::InFlight& refit, double percent);
/// What of the whole refit is applied, mean over the nodes.
[[nodiscard]] double applied_percent(const relay::admin::InFlight& refit);
/// Empty while there is too little to judge by, and once nothing is left to distribute.
[[nodiscard]] std::optional<std::chrono::milliseconds> time_left(const relay::admin::InFlight& refit);

/// `waits for bom-01 (unreachable), hel-41 (RECEIVING) and 3 more`; empty while the root encodes, and after the
/// decision.
[[nodiscard]] std::string awaited_text(const relay::admin::InFlight& refit);
/// `00:14 elapsed, about 00:09 left`; empty when a relay tells of the refit, which does not know since when it runs.
[[nodiscard]] std::string elapsed_text(const relay::admin::InFlight& refit);
/// `1.84 GiB, 2.97 % changed`, with `so far, 34 % read` while the root encodes; a relay knows what it received.
[[nodiscard]] std::string size_text(const relay::admin::InFlight& refit);
/// One line: phase, bar, counts, time, and whom the refit waits for.
[[nodiscard]] std::string progress_text(const Context& context, const relay::admin::RefitDocument& document);

/// `v1843`; `-` for version 0, which means none.
[[nodiscard]] std::string version_text(relay::admin::Version version);

}  // namespace deltarelay::relayctl
