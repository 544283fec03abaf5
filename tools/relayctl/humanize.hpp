// Numbers as operators read them: sizes, rates, durations, shares, bars; and durations as they type them.
//
// Pure functions without locale: the same value gives the same text everywhere, so golden tests may hold them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deltarelay::relayctl {

/// 1.84 GiB, 512 B, 96.0 KiB: binary units, three significant digits.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);
/// 118 MB/s, 3.10 GB/s: decimal units, as disks and networks are sold.
[[nodiscard]] std::string human_rate(double bytes_per_second);
/// 0.94 Gb/s: bits, for links.
[[nodiscard]] std::string human_link_rate(double bytes_per_second);
/// Whole numbers in groups of three: 1 234 567.
[[nodiscard]] std::string human_count(std::uint64_t count);
/// 58 %, 2.97 %.
[[nodiscard]] std::string human_percent(double percent, int decimals = 0);
/// An age or uptime in its two largest units: 6d 3h, 2m 11s, 480ms.
[[nodiscard]] std::string human_age(std::chrono::milliseconds age);
/// A running clock: 00:14, 1:02:03.
[[nodiscard]] std::string human_clock(std::chrono::milliseconds elapsed);
/// A measured time with what it is worth: 0.418 s, 12.3 s, 2m 11s.
[[nodiscard]] std::string human_seconds(double seconds);
/// ████░░░░ or ####....; `fraction` is held within 0 and 1.
[[nodiscard]] std::string bar(double fraction, int width, bool ascii);

/// 500ms, 10s, 2m, 1h, 1d; a bare number is seconds. Nothing for anything else.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// 2026-01-31T14:02:07Z or with the local offset. `at` is in whole seconds since 1970.
[[nodiscard]] std::string format_time(std::chrono::sys_seconds at, bool utc);

}  // namespace deltarelay::relayctl
