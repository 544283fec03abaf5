// See progress_line.hpp.
#include "tools/relayctl/progress_line.hpp"

#include <chrono>

namespace deltarelay::relayctl {
namespace {

// A line that wraps cannot be rewritten: \r goes back to the start of its last row only.
constexpr std::size_t cells_max = 79;
constexpr std::chrono::seconds plain_interval{1};

}  // namespace

std::string clipped(std::string_view text, std::size_t cells) {
  std::size_t end = 0;
  for (std::size_t used = 0; end < text.size(); ++end) {
    const bool starts_a_code_point = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (starts_a_code_point && used++ == cells) break;
  }
  return std::string(text.substr(0, end));
}

void ProgressLine::show(std::string_view text) {
  if (context_.quiet || text == last_) return;
  if (context_.surroundings.stderr_terminal) {
    std::fprintf(context_.err, "\r%s\x1b[K", clipped(text, cells_max).c_str());
    std::fflush(context_.err);
    on_screen_ = true;
  } else {
    const auto now = pace_.now();
    if (said_at_ && now - *said_at_ < plain_interval) return;
    said_at_ = now;
    context_.note(text);
  }
  last_ = text;
}

void ProgressLine::end() {
  if (!on_screen_) return;
  std::fputs("\r\x1b[K", context_.err);
  std::fflush(context_.err);
  on_screen_ = false;
  last_.clear();
}

}  // namespace deltarelay::relayctl
