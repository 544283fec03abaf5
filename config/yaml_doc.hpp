// YAML with places, read strictly: what a file says is what we take it to say, or it is refused.
//
// Layer: config. yaml-cpp and its exceptions end in yaml_doc.cpp. Of YAML, configuration needs maps, lists and scalars;
// the rest is refused by name: anchors and aliases (which grow without bound), tags, several documents, doubled keys.
// Everything is bounded before yaml-cpp sees the text (size, indicators, nesting), so no file costs more than a second
// or 200 MB. Conversion of scalars is ours (units.hpp): yaml-cpp would read 010 as 8.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/findings.hpp"

namespace deltarelay::config {

inline constexpr std::size_t yaml_bytes_max = 2 * 1024 * 1024;
inline constexpr std::size_t yaml_depth_max = 32;
/// Characters that begin, end or separate something; a bound on the parser's memory.
inline constexpr std::size_t yaml_indicators_max = 300'000;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  struct Entry;

  Kind kind = Kind::null;
  Position at;
  std::string text;             ///< of a scalar
  bool quoted = false;          ///< scalar in quotes, or a block scalar
  std::vector<YamlNode> items;  ///< of a list
  std::vector<Entry> entries;   ///< of a map, in file order, keys unique
};

struct YamlNode::Entry {
  std::string key;
  Position at;
  YamlNode value;
};

/// Reads one document. Nothing if it has syntax errors or is past a limit; doubled keys are findings, and the first one
/// stays.
[[nodiscard]] std::optional<YamlNode> parse_yaml(std::string_view text, Findings& findings);

/// The whole file, at most yaml_bytes_max of it; nothing and a finding if it cannot be read or is larger.
[[nodiscard]] std::optional<std::string> read_yaml_file(const std::filesystem::path& file, Findings& findings);

/// The text in double quotes, shortened and with control characters made visible: for messages.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace deltarelay::config
