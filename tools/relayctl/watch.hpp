// `-w`: the same view again every second, until the operator interrupts.
//
// A terminal gets one screen that is rewritten; a pipe gets one view after the other. A daemon that stops answering is
// said above the last view, and looked for again: whoever watches a restart wants to see its end.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "tools/relayctl/admin_client.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/pace.hpp"

namespace deltarelay::relayctl {

/// One look at the daemon: the text to show and the exit code that goes with it, or why there is none.
struct View {
  std::string text;
  int exit_code = 0;
  std::optional<ClientError> error;
};

/// What rewrites a terminal of `rows` rows with `text`: longer text is cut, because a screen that scrolls cannot be
/// rewritten, and so are longer lines, because one that wraps takes two rows. 0 rows: nothing is known, nothing is cut.
[[nodiscard]] std::string screen(const std::string& text, std::size_t rows);

/// Shows one view, or with `again` one a second; the first must succeed. The last view's exit code.
int show_views(const Context& context, Pace& pace, bool again, const std::function<View()>& look);

}  // namespace deltarelay::relayctl
