// See arguments.hpp.
#include "tools/relayctl/arguments.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

namespace deltarelay::relayctl {

std::optional<codec::Version> parse_version(std::string_view text) {
  if (text.substr(0, 1) == "v") text.remove_prefix(1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0) return std::nullopt;
  return codec::Version{number};
}

std::optional<double> parse_percent(std::string_view text) {
  if (!text.empty() && text.back() == '%') text.remove_suffix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number >= 0 && number <= 100 ? std::optional(number) : std::nullopt;
}

CLI::Option* add_version_argument(CLI::App& app, const std::string& name, std::optional<codec::Version>& to,
                                  const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&to, name](const std::string& text) {
            to = parse_version(text);
            if (!to) throw CLI::ValidationError(name, "\"" + text + "\" is no version like 1843 or v1843");
          },
          help)
      ->type_name("VERSION");
}

}  // namespace deltarelay::relayctl
