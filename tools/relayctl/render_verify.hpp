// What every node found when it compared its image with its ledger. Pure; under golden tests.
#pragma once

#include <string>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

[[nodiscard]] std::string verify_text(const Context& context, const relay::admin::VerifyDocument& document);
/// failed when any image is damaged, unreachable when none is but some node could not be asked, else ok.
[[nodiscard]] ExitCode verify_exit(const relay::admin::VerifyDocument& document);

}  // namespace deltarelay::relayctl
