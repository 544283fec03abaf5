// Reads one YAML map key by key into a struct: each key once, with its range, every mistake a finding with its place.
//
// Layer: config. A field whose key is absent keeps the value it has, which is its default; a field whose key is wrong
// keeps it too, so that reading goes on and later mistakes are found in the same run. finish() refuses whatever was not
// asked for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/findings.hpp"
#include "config/units.hpp"
#include "config/yaml_doc.hpp"

namespace deltarelay::config {

class MapReader {
 public:
  /// `path` stands before key names in messages, with its dot ("limits."); empty at the top. `node` must outlive the
  /// reader. A node that is no map is a finding, and then every key is absent without further findings.
  MapReader(const YamlNode& node, std::string path, Findings& findings);

  [[nodiscard]] bool is_map() const noexcept { return is_map_; }
  [[nodiscard]] Position at() const noexcept { return node_.at; }
  /// The place of the key's value; of the map if it is absent.
  [[nodiscard]] Position at(std::string_view key) const;

  /// The value, of whatever kind; null if absent. A required one that is absent is a finding.
  const YamlNode* node(std::string_view key);
  const YamlNode* required(std::string_view key);
  /// The items of a list; empty if absent.
  const std::vector<YamlNode>& list(std::string_view key);

  void text(std::string_view key, std::string& out);
  void required_text(std::string_view key, std::string& out);
  /// Relative to `base`; absent: unchanged.
  void path(std::string_view key, const std::filesystem::path& base, std::filesystem::path& out);
  void required_path(std::string_view key, const std::filesystem::path& base, std::filesystem::path& out);

  void count(std::string_view key, std::uint32_t& out, std::uint32_t least, std::uint32_t most);
  void count(std::string_view key, std::uint64_t& out, std::uint64_t least, std::uint64_t most);
  void size(std::string_view key, std::uint64_t& out, std::uint64_t least, std::uint64_t most);
  void duration(std::string_view key, std::chrono::nanoseconds& out, std::chrono::nanoseconds least,
                std::chrono::nanoseconds most);
  /// The same in whole milliseconds; finer ones are refused.
  void duration(std::string_view key, std::chrono::milliseconds& out, std::chrono::milliseconds least,
                std::chrono::milliseconds most);
  void rate(std::string_view key, topology::Rate& out);  ///< more than 0
  void share(std::string_view key, double& out);         ///< more than 0, at most 1
  void decimal(std::string_view key, double& out);
  void flag(std::string_view key, bool& out);

  template <class Value>
  using Choices = std::vector<std::pair<std::string_view, Value>>;
  template <class Value>
  void choice(std::string_view key, Value& out, const Choices<Value>& choices) {
    const YamlNode* value = scalar(key);
    if (value == nullptr) return;
    std::vector<std::string_view> names;
    for (const auto& [name, meaning] : choices) {
      if (name == value->text) out = meaning;
      names.push_back(name);
    }
    if (std::find(names.begin(), names.end(), value->text) == names.end()) refuse_choice(key, *value, names);
  }

  /// `PATH.KEY: MESSAGE` at the key's value.
  void refuse(std::string_view key, const std::string& message);
  /// Unknown keys, each with the nearest known one.
  void finish();

 private:
  const YamlNode::Entry* find(std::string_view key) const;
  const YamlNode* scalar(std::string_view key);
  void refuse_choice(std::string_view key, const YamlNode& value, const std::vector<std::string_view>& names);
  void refuse_value(std::string_view key, const YamlNode& value, const std::string& why);
  template <class T, class Parse, class Show>
  void bounded(std::string_view key, T& out, T least, T most, Parse parse, Show show);

  const YamlNode& node_;
  std::string path_;
  Findings& findings_;
  bool is_map_;
  std::vector<std::string_view> known_;
};

/// Past this many findings no suggestions are looked for: the file is not what it is taken for.
inline constexpr std::size_t suggestions_max = 100;

}  // namespace deltarelay::config
