// How far something is, on stderr: one line that is rewritten on a terminal, else a line a second when something
// changed.
//
// Lives for one wait. On a terminal the line is wiped at the end, so that results stand alone. Nothing with -q.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/relayctl/context.hpp"
#include "tools/relayctl/pace.hpp"

namespace deltarelay::relayctl {

class ProgressLine {
 public:
  ProgressLine(const Context& context, const Pace& pace) : context_(context), pace_(pace) {}
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  /// Wipes the line, so that something else can be said; show() may follow.
  void end();

 private:
  const Context& context_;
  const Pace& pace_;
  std::string last_;
  std::optional<Pace::Instant> said_at_;
  bool on_screen_ = false;
};

/// The first `cells` cells of `text`, whole code points only, control characters as `?`.
[[nodiscard]] std::string clipped(std::string_view text, std::size_t cells);

}  // namespace deltarelay::relayctl
