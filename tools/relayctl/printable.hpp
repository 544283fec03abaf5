// Texts of the fleet made safe to show: a node's name or reason comes over the network, and an escape sequence in it
// would be obeyed by the operator's terminal. Pure.
#pragma once

#include <string>
#include <string_view>

namespace deltarelay::relayctl {

/// JSON whose strings hold no control characters any more: each is a `?`, line ends and tabs are blanks. Everything
/// else is as it was, whether or not `body` is well formed.
[[nodiscard]] std::string without_controls(std::string_view body);

}  // namespace deltarelay::relayctl
