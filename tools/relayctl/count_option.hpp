// Options that take a whole number: plain decimal and within a range, or the line is refused.
//
// CLI11 reads -1 as 18446744073709551615, a number past 64 bits as the largest one, and 010 as 8. A seed that was
// mistyped would then make a checkpoint nobody can make again, so numbers are read as configuration files have them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace deltarelay::relayctl {

struct CountRange {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

CLI::Option* add_count(CLI::App& app, const std::string& name, CountRange range, const std::string& help,
                       std::function<void(std::uint64_t)> take);
/// Shows `text` as the default in --help.
void show_default(CLI::Option& option, std::uint64_t count);

/// `to` outlives the parse; its value before is the default that --help shows. REQUIRES that `range` fits its type.
template <class Number>
requires std::is_unsigned_v<Number> CLI::Option* add_count(CLI::App& app, const std::string& name, Number& to,
                                                           CountRange range, const std::string& help) {
  CLI::Option* option =
      add_count(app, name, range, help, [&to](std::uint64_t count) { to = static_cast<Number>(count); });
  show_default(*option, to);
  return option;
}

/// Nothing when the option is not given.
template <class Number>
requires std::is_unsigned_v<Number> CLI::Option* add_count(CLI::App& app, const std::string& name,
                                                           std::optional<Number>& to, CountRange range,
                                                           const std::string& help) {
  return add_count(app, name, range, help, [&to](std::uint64_t count) { to = static_cast<Number>(count); });
}

}  // namespace deltarelay::relayctl
