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
  std::string line;
  std::size_t used = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool starts_a_code_point = (byte & 0xC0U) != 0x80U;
    if (starts_a_code_point && used++ == cells) break;
    line += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return line;
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
