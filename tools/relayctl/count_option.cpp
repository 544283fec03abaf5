// See count_option.hpp.
#include "tools/relayctl/count_option.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "config/units.hpp"
#include "config/yaml_doc.hpp"

namespace deltarelay::relayctl {

CLI::Option* add_count(CLI::App& app, const std::string& name, CountRange range, const std::string& help,
                       std::function<void(std::uint64_t)> take) {
  const auto read = [name, range, take = std::move(take)](const std::string& text) {
    const auto count = config::parse_count(text);
    if (!count || *count < range.least || *count > range.most) {
      const std::string why = count ? "is out of range" : count.error().why;
      throw CLI::ValidationError(
          name, fmt::format("{} {}; give one from {} to {}", config::shown(text), why, range.least, range.most));
    }
    take(*count);
  };
  return app.add_option_function<std::string>(name, read, help)->type_name("N");
}

void show_default(CLI::Option& option, std::uint64_t count) {
  option.default_str(std::to_string(count));
}

}  // namespace deltarelay::relayctl
