// The one screen of `relayctl status`, and `relayctl health`. Pure; under golden tests.
#pragma once

#include <string>
#include <string_view>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

[[nodiscard]] std::string status_text(const Context& context, const relay::admin::StatusDocument& document);

/// `relayctl health`: each check; with `detail` also what an operator can do about it.
[[nodiscard]] std::string health_text(const Context& context, const relay::admin::Health& health, bool detail);

/// The exit code that `health` and `status --check` give for a health level; a level that is not known here counts as
/// ERR.
[[nodiscard]] ExitCode health_exit(std::string_view level);
[[nodiscard]] Style health_style(std::string_view level);

}  // namespace deltarelay::relayctl
