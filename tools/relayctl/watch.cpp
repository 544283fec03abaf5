// See watch.hpp.
#include "tools/relayctl/watch.hpp"

#include <chrono>

namespace deltarelay::relayctl {
namespace {

constexpr std::chrono::milliseconds interval{1000};

/// Overwrites line by line instead of clearing first, which would flicker.
std::string screen(const std::string& text) {
  std::string out = "\x1b[H";
  for (const char c : text) {
    if (c == '\n') out += "\x1b[K";
    out += c;
  }
  return out + "\x1b[J";
}

}  // namespace

int show_views(const Context& context, Pace& pace, bool again, const std::function<View()>& look) {
  View view = look();
  if (view.error) return fail(context, *view.error);
  if (!again) {
    context.print(view.text);
    return view.exit_code;
  }
  const bool rewrite = context.surroundings.stdout_terminal && !context.json();
  if (rewrite) context.print("\x1b[2J");
  std::string said;
  bool first = true;
  for (;;) {
    if (rewrite) {
      context.print(screen(view.text + (said.empty() ? "" : "\n" + said + "\n")));
    } else if (said.empty()) {
      context.print(first || context.json() ? view.text : "\n" + view.text);
    }
    if (std::fflush(context.out) != 0) return view.exit_code;  // nobody reads any more
    first = false;
    if (!pace.rest(interval)) return view.exit_code;
    View next = look();
    if (next.error) {
      const std::string line = error_line(next.error->what, next.error->why, "wait: asked again every second");
      if (!rewrite && line != said) context.note(line);
      said = line;
    } else {
      view = std::move(next);
      said.clear();
    }
  }
}

}  // namespace deltarelay::relayctl
