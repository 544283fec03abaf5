// Numbers with units, as configuration files and command lines write them. Plain decimal only: no octal, hex, exponent,
// sign or leading zero, so that 010 is never 8.
//
//   count     16
//   duration  500ms  5s  1h30m  2d        (ns us ms s m h d, largest first; a bare 0 is allowed, a bare 5 is not)
//   size      4096  4KiB  1GiB  2TB       (bytes; kB MB GB TB PB by 1000, KiB MiB GiB TiB PiB by 1024)
//   rate      10Gbps  381MB/s  1GiB/s     (bits with bps, kbps, Mbps, Gbps, Tbps; bytes with SIZE/s)
//   percent   95%  1.5%  0.95             (a share of 1)
//   flag      true  false
// Durations, sizes and rates take a decimal fraction (1.5GiB). Layer: config; pure. A refusal is a sentence without a
// subject.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "topology/model.hpp"

namespace deltarelay::config {

/// Why text is not a value, to stand behind the name of the key.
struct BadValue {
  std::string why;
};

/// `boost::system::result` with a sentence; asking a refusal for its value is a mistake of ours and throws.
template <class T>
using Parsed = boost::system::result<T, BadValue>;
[[noreturn]] void throw_exception_from_error(const BadValue& bad, const boost::source_location& loc);

[[nodiscard]] Parsed<std::uint64_t> parse_count(std::string_view text);
[[nodiscard]] Parsed<std::chrono::nanoseconds> parse_duration(std::string_view text);
[[nodiscard]] Parsed<std::uint64_t> parse_size(std::string_view text);
[[nodiscard]] Parsed<topology::Rate> parse_rate(std::string_view text);
[[nodiscard]] Parsed<double> parse_percent(std::string_view text);
[[nodiscard]] Parsed<bool> parse_flag(std::string_view text);
/// A decimal number that is not negative.
[[nodiscard]] Parsed<double> parse_decimal(std::string_view text);
/// "host:port", "[IPv6]:port". The host may not be empty; the port is 1 to 65535.
[[nodiscard]] Parsed<topology::Address> parse_address(std::string_view text);

/// The shortest text that the parser above reads back as exactly this value.
[[nodiscard]] std::string duration_text(std::chrono::nanoseconds value);
[[nodiscard]] std::string size_text(std::uint64_t bytes);
[[nodiscard]] std::string rate_text(topology::Rate rate);
[[nodiscard]] std::string share_text(double share);

}  // namespace deltarelay::config
