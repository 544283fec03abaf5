// `relayctl verify` without DIR: every node below the daemon compares its image with its ledger; this follows and
// tells.
//
// The daemon answers at once and is then asked again and again, so that nothing depends on one connection lasting for
// as long as a fleet reads its images. Leaving early does not stop the round.
#pragma once

#include <chrono>

#include "tools/relayctl/context.hpp"
#include "tools/relayctl/pace.hpp"

namespace deltarelay::relayctl {

/// Prints the table or the document. Result: see verify_exit(); timed_out also when `within` has passed, with what is
/// known.
[[nodiscard]] int verify_fleet(const Context& context, Pace& pace, bool deep, std::chrono::milliseconds within);

}  // namespace deltarelay::relayctl
