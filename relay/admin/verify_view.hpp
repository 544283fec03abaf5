// A round of verifying as an operator sees it: a row for every node that the answering node can speak for.
//
// Layer: relay/admin; pure, as fleet_view.hpp. A node without an answer is a row like any other, with why there is
// none.
#pragma once

#include "relay/admin/fleet_view.hpp"

namespace deltarelay::relay::admin {

/// `over`: nobody is waited for any more, so whoever has not said its last word will not be heard. REQUIRES
/// round.begun().
[[nodiscard]] VerifyDocument verify_document(const FleetInput& input, const VerifyRound& round, bool over);

}  // namespace deltarelay::relay::admin
