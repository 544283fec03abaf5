// Texts in a row. By hand, because fmt::join makes g++ 12 warn of an overflow that is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deltarelay::relayctl {

[[nodiscard]] inline std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

}  // namespace deltarelay::relayctl
