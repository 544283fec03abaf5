// What every node found when it compared its image with its ledger. Pure; under golden tests.
#pragma once

#include <string>
#include <vector>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

/// A row a node; with -o wide also the damaged blocks that are known by name.
[[nodiscard]] std::string verify_text(const Context& context, const relay::admin::VerifyDocument& document);
/// One line for while the round runs: `2 of 7 nodes done, 35 % read, last hel-04 12 %`.
[[nodiscard]] std::string verify_progress_text(const relay::admin::VerifyDocument& document);
/// failed when any image is damaged or cannot be read; else unreachable when some node could not be asked; else
/// timed_out when one was busy for too long or has not finished; else ok.
[[nodiscard]] ExitCode verify_exit(const relay::admin::VerifyDocument& document);

/// What stderr says beside the table, for Context::fail().
struct VerifyComplaint {
  ExitCode code = ExitCode::failed;
  std::string what, why, try_next;
};
/// One for each image that is not right, one for all that are busy, one for all that have not finished.
[[nodiscard]] std::vector<VerifyComplaint> verify_complaints(const relay::admin::VerifyDocument& document);

}  // namespace deltarelay::relayctl
