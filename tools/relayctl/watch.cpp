// See watch.hpp.
#include "tools/relayctl/watch.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>

namespace deltarelay::relayctl {
namespace {

constexpr std::chrono::milliseconds interval{1000};

std::size_t rows_of(std::FILE* terminal) {
  winsize size{};
  return ::ioctl(::fileno(terminal), TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

constexpr std::string_view no_wrap = "\x1b[?7l";
constexpr std::string_view wrap = "\x1b[?7h";

}  // namespace

std::string screen(const std::string& text, std::size_t rows) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  // The cursor stands below the last line, which takes a row too.
  const bool cut = rows > 2 && lines + 1 > rows;
  std::size_t left = cut ? rows - 2 : lines;
  // Line by line over the old picture: clearing first would flicker.
  std::string out = "\x1b[H";
  out += no_wrap;
  for (auto at = text.begin(); at != text.end() && left > 0; ++at) {
    if (*at == '\n') {
      out += "\x1b[K";
      --left;
    }
    out += *at;
  }
  if (cut) out += std::to_string(lines - (rows - 2)) + " more lines do not fit\x1b[K\n";
  out += "\x1b[J";
  out += wrap;
  return out;
}

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
      context.print(screen((said.empty() ? "" : said + "\n\n") + view.text, rows_of(context.out)));
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
