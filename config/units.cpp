#include "config/units.hpp"

#include <algorithm>
#include <array>
#include <boost/throw_exception.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace deltarelay::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 7> duration_units{{{"d", 86'400'000'000'000},
                                              {"h", 3'600'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"s", 1'000'000'000},
                                              {"ms", 1'000'000},
                                              {"us", 1'000},
                                              {"ns", 1}}};
constexpr std::array<Unit, 11> size_units{{{"PiB", 1ull << 50},
                                           {"TiB", 1ull << 40},
                                           {"GiB", 1ull << 30},
                                           {"MiB", 1ull << 20},
                                           {"KiB", 1ull << 10},
                                           {"PB", 1'000'000'000'000'000},
                                           {"TB", 1'000'000'000'000},
                                           {"GB", 1'000'000'000},
                                           {"MB", 1'000'000},
                                           {"kB", 1'000},
                                           {"B", 1}}};
constexpr std::array<Unit, 5> bit_units{
    {{"Tbps", 1'000'000'000'000}, {"Gbps", 1'000'000'000}, {"Mbps", 1'000'000}, {"kbps", 1'000}, {"bps", 1}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "12" or "12.5" at the front of `text`, with no leading zero and at most 9 digits after the point.
struct Number {
  std::uint64_t whole = 0, nanos = 0;  ///< nanos: billionths of the fraction
  bool fraction = false;
  std::string_view rest;
};

Parsed<Number> parse_number(std::string_view text) {
  Number number;
  if (text.empty()) return BadValue{"is empty"};
  if (!is_digit(text.front())) return BadValue{"is not a plain decimal number"};
  std::size_t i = 0;
  while (i < text.size() && is_digit(text[i])) ++i;
  if (i > 1 && text.front() == '0') return BadValue{"has a leading zero; write it without"};
  const auto whole = std::from_chars(text.data(), text.data() + i, number.whole);
  if (whole.ec != std::errc{}) return BadValue{"is too large"};
  if (i < text.size() && text[i] == '.') {
    std::uint64_t scale = 100'000'000;
    const std::size_t first = ++i;
    for (; i < text.size() && is_digit(text[i]); ++i, scale /= 10) {
      if (i - first == 9) return BadValue{"has more than 9 digits after the point"};
      number.nanos += scale * static_cast<std::uint64_t>(text[i] - '0');
    }
    if (i == first) return BadValue{"has no digit after the point"};
    number.fraction = true;
  }
  number.rest = text.substr(i);
  return number;
}

/// number x factor, exact for whole results, rounded down otherwise; refused past 2^63.
Parsed<std::uint64_t> scaled(const Number& number, std::uint64_t factor) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (number.whole > most / factor) return BadValue{"is too large"};
  // nanos < 10^9, so only factors past 2^34 need the split.
  const std::uint64_t part =
      factor / 1'000'000'000 * number.nanos + factor % 1'000'000'000 * number.nanos / 1'000'000'000;
  const std::uint64_t value = number.whole * factor;
  if (part > most - value) return BadValue{"is too large"};
  return value + part;
}

template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& units, std::string_view name) {
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& unit) { return unit.name == name; });
  return found == units.end() ? nullptr : &*found;
}

/// The largest unit that divides the value.
template <std::size_t N>
std::string in_units(const std::array<Unit, N>& units, std::uint64_t value) {
  std::string best;
  for (const Unit& unit : units) {
    if (value % unit.factor != 0) continue;
    std::string text = std::to_string(value / unit.factor);
    text += unit.name;
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return best;
}

bool looks_yes_or_no(std::string_view text) {
  constexpr std::array<std::string_view, 8> words{"yes", "no", "on", "off", "y", "n", "1", "0"};
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower == "true" || lower == "false" || std::find(words.begin(), words.end(), lower) != words.end();
}

}  // namespace

void throw_exception_from_error(const BadValue& bad, const boost::source_location& loc) {
  boost::throw_exception(std::logic_error("value read from a refusal: " + bad.why), loc);
}

Parsed<std::uint64_t> parse_count(std::string_view text) {
  const auto number = parse_number(text);
  if (!number) return number.error();
  if (number->fraction || !number->rest.empty()) return BadValue{"is not a whole decimal number"};
  return number->whole;
}

Parsed<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::nanoseconds(0);
  std::uint64_t total = 0, last_factor = std::numeric_limits<std::uint64_t>::max();
  do {
    const auto number = parse_number(text);
    if (!number) return number.error();
    std::size_t length = 0;
    while (length < number->rest.size() && !is_digit(number->rest[length])) ++length;
    const std::string_view name = number->rest.substr(0, length);
    if (name.empty()) return BadValue{"has no unit; write for example 5s or 500ms"};
    const Unit* unit = find_unit(duration_units, name);
    if (unit == nullptr) return BadValue{"has an unknown unit; use ns, us, ms, s, m, h or d"};
    if (unit->factor >= last_factor) return BadValue{"has its units out of order; write for example 1h30m"};
    last_factor = unit->factor;
    const auto part = scaled(*number, unit->factor);
    if (!part) return part.error();
    if (*part > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - total)
      return BadValue{"is too large"};
    total += *part;
    text = number->rest.substr(length);
  } while (!text.empty());
  return std::chrono::nanoseconds(static_cast<std::int64_t>(total));
}

Parsed<std::uint64_t> parse_size(std::string_view text) {
  const auto number = parse_number(text);
  if (!number) return number.error();
  if (number->rest.empty() && !number->fraction) return scaled(*number, 1);
  const Unit* unit = find_unit(size_units, number->rest);
  if (unit == nullptr)
    return BadValue{"has an unknown unit; use B, kB, MB, GB, TB (by 1000) or KiB, MiB, GiB, TiB (by 1024)"};
  return scaled(*number, unit->factor);
}

Parsed<topology::Rate> parse_rate(std::string_view text) {
  constexpr const char* hint = "is not a rate; write for example 10Gbps (bits) or 381MB/s (bytes)";
  const auto number = parse_number(text);
  if (!number) return number.error();
  if (const Unit* bits = find_unit(bit_units, number->rest)) {
    const auto value = scaled(*number, bits->factor);
    if (!value) return value.error();
    return topology::Rate{*value / 8};
  }
  if (number->rest.size() < 3 || number->rest.substr(number->rest.size() - 2) != "/s") return BadValue{hint};
  const Unit* bytes = find_unit(size_units, number->rest.substr(0, number->rest.size() - 2));
  if (bytes == nullptr) return BadValue{hint};
  const auto value = scaled(*number, bytes->factor);
  if (!value) return value.error();
  return topology::Rate{*value};
}

Parsed<double> parse_decimal(std::string_view text) {
  const auto number = parse_number(text);
  if (!number) return number.error();
  if (!number->rest.empty()) return BadValue{"is not a plain decimal number"};
  return static_cast<double>(number->whole) + static_cast<double>(number->nanos) / 1e9;
}

Parsed<double> parse_percent(std::string_view text) {
  const bool in_percent = !text.empty() && text.back() == '%';
  const auto value = parse_decimal(in_percent ? text.substr(0, text.size() - 1) : text);
  if (!value) return BadValue{"is not a share; write for example 95% or 0.95"};
  const double share = in_percent ? *value / 100 : *value;
  if (share > 1) {
    const std::string meant(text);
    return BadValue{in_percent || share > 100
                        ? "is more than 100%"
                        : "is more than 100%; for " + meant + " in a hundred write " + meant + "%"};
  }
  return std::round(share * 1e9) / 1e9;  // what share_text() can say
}

Parsed<bool> parse_flag(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return BadValue{looks_yes_or_no(text) ? "is not a flag here; write true or false" : "must be true or false"};
}

Parsed<topology::Address> parse_address(std::string_view text) {
  constexpr const char* hint = "is not an address; write host:port, or [IPv6]:port";
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return BadValue{hint};
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (bracketed != (host.find(':') != std::string_view::npos)) return BadValue{hint};
  constexpr std::size_t host_bytes_max = 253;  // of a DNS name
  if (host.size() > host_bytes_max) return BadValue{"has a host name of more than 253 bytes"};
  constexpr std::string_view extra = ".-_";
  for (const char c : host) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
    if (!letter && extra.find(c) == std::string_view::npos && !(bracketed && (c == ':' || c == '%')))
      return BadValue{hint};
  }
  const auto port = parse_count(text.substr(colon + 1));
  if (!port) return BadValue{"has a port that " + port.error().why};
  if (*port == 0 || *port > 65535) return BadValue{"has a port that is not in 1 to 65535"};
  return topology::Address{std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string duration_text(std::chrono::nanoseconds value) {
  return value.count() == 0 ? "0s" : in_units(duration_units, static_cast<std::uint64_t>(value.count()));
}

std::string size_text(std::uint64_t bytes) {
  return bytes == 0 ? "0B" : in_units(size_units, bytes);
}

std::string rate_text(topology::Rate rate) {
  return rate.bytes_per_second == 0 ? "0B/s" : in_units(size_units, rate.bytes_per_second) + "/s";
}

std::string share_text(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9f", share);
  std::string out = text.data();
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

}  // namespace deltarelay::config
