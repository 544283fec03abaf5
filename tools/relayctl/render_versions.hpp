// The history of versions, and what became of one refit. Pure; under golden tests.
#pragma once

#include <string>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

/// A row a version, newest first; `-o wide` adds the times of the phases.
[[nodiscard]] std::string versions_text(const Context& context, const relay::admin::VersionsDocument& document);
/// The page of one version.
[[nodiscard]] std::string version_page(const Context& context, const relay::admin::VersionDocument& document);

/// How `publish --wait` ends: the version, how many nodes hold it, what was sent, and the time of each phase.
[[nodiscard]] std::string outcome_text(const Context& context, const relay::admin::VersionRow& row);
/// The same facts of a refit that is still in the daemon's memory.
[[nodiscard]] relay::admin::VersionRow row_of(const relay::admin::RefitDocument& document);
/// What `publish --dry-run` found.
[[nodiscard]] std::string dry_run_text(const relay::admin::PublishDocument& document);

[[nodiscard]] double total_seconds(const relay::admin::PhaseSeconds& seconds);

}  // namespace deltarelay::relayctl
