// See humanize.hpp.
#include "tools/relayctl/humanize.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

namespace deltarelay::relayctl {
namespace {

using namespace std::chrono_literals;

/// Three significant digits with the largest unit that keeps the number at 1 or more.
std::string scaled(double value, double step, const std::array<std::string_view, 6>& units) {
  std::size_t unit = 0;
  // 999.5 would print as 1000: the next unit is due already.
  while (unit + 1 < units.size() && value >= (step == 1024.0 ? 1023.5 : 999.5)) {
    value /= step;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024.0, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string human_rate(double bytes_per_second) {
  return scaled(std::max(0.0, bytes_per_second), 1000.0, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"});
}

std::string human_link_rate(double bytes_per_second) {
  return scaled(std::max(0.0, bytes_per_second) * 8.0, 1000.0, {"b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "Pb/s"});
}

std::string human_count(std::uint64_t count) {
  const std::string plain = std::to_string(count);
  std::string text;
  for (std::size_t at = 0; at < plain.size(); ++at) {
    if (at > 0 && (plain.size() - at) % 3 == 0) text += ' ';
    text += plain[at];
  }
  return text;
}

std::string human_percent(double percent, int decimals) {
  // 99.97 % must not read as 100 %: what is not complete is never shown as complete.
  const double scale = std::pow(10.0, decimals);
  if (percent < 100.0) percent = std::min(percent, (100.0 * scale - 1.0) / scale);
  return fmt::format("{:.{}f} %", percent, decimals);
}

std::string human_age(std::chrono::milliseconds age) {
  if (age < 0ms) age = 0ms;
  if (age < 1s) return fmt::format("{}ms", age.count());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m {}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h {}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d {}h", seconds / 86400, seconds / 3600 % 24);
}

std::string human_clock(std::chrono::milliseconds elapsed) {
  const auto seconds = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(elapsed).count());
  if (seconds < 3600) return fmt::format("{:02}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string human_seconds(double seconds) {
  if (seconds < 10.0) return fmt::format("{:.3f} s", std::max(0.0, seconds));
  if (seconds < 120.0) return fmt::format("{:.1f} s", seconds);
  return human_age(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000.0)));
}

std::string bar(double fraction, int width, bool ascii) {
  if (!(fraction > 0.0)) fraction = 0.0;  // also not-a-number
  if (fraction > 1.0) fraction = 1.0;
  int full = static_cast<int>(std::floor(fraction * width));
  if (full == width && fraction < 1.0) --full;
  std::string text;
  for (int cell = 0; cell < width; ++cell) {
    if (ascii) {
      text += cell < full ? '#' : '.';
    } else {
      text += cell < full ? "\u2588" : "\u2591";
    }
  }
  return text;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double factor = 0;
  if (unit == "ms") factor = 1;
  if (unit.empty() || unit == "s") factor = 1e3;
  if (unit == "m" || unit == "min") factor = 60e3;
  if (unit == "h") factor = 3600e3;
  if (unit == "d") factor = 86400e3;
  const double milliseconds = number * factor;
  if (factor == 0 || milliseconds > 1e15) return std::nullopt;
  return std::chrono::milliseconds(std::llround(milliseconds));
}

std::string format_time(std::chrono::sys_seconds at, bool utc) {
  const std::time_t seconds = at.time_since_epoch().count();
  std::tm parts{};
  if (utc) {
    if (gmtime_r(&seconds, &parts) == nullptr) return "-";
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", parts);
  }
  if (localtime_r(&seconds, &parts) == nullptr) return "-";
  const long offset = parts.tm_gmtoff;
  if (offset == 0) return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", parts);
  const long minutes = std::abs(offset) / 60;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}{}{:02}:{:02}", parts, offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

}  // namespace deltarelay::relayctl
