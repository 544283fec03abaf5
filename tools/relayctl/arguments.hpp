// Values as operators type them on the command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codec/types.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace deltarelay::relayctl {

/// `1843` or `v1843`; 0 is no version.
[[nodiscard]] std::optional<codec::Version> parse_version(std::string_view text);
/// `95`, `95%`, `99.5`: within 0 and 100.
[[nodiscard]] std::optional<double> parse_percent(std::string_view text);

/// An option or positional argument whose text must be a version; else the line is a usage error.
CLI::Option* add_version_argument(CLI::App& app, const std::string& name, std::optional<codec::Version>& to,
                                  const std::string& help);

}  // namespace deltarelay::relayctl
