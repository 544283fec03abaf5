// How refusals of the codec, the store and the certificates end a command: exit code and what to try.
#pragma once

#include <string_view>

#include "codec/errc.hpp"
#include "relay/store/store_error.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

/// By cause: invalid content 3, a state of things that must change first 6, a wrong argument 2, everything else 1.
[[nodiscard]] ExitCode exit_code_of(const boost::system::error_code& code);

/// The way out of this cause, if one is known; else nothing.
[[nodiscard]] std::string_view try_next_of(const boost::system::error_code& code);

/// Ends a command: "error: WHAT: REFUSAL. Try: …". `what` names the act: "cannot read the checkpoint".
int fail(const Context& context, std::string_view what, const codec::Failure& failure);
int fail(const Context& context, std::string_view what, const relay::StoreError& error);

}  // namespace deltarelay::relayctl
