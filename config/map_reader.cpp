#include "config/map_reader.hpp"

#include "config/nearest_name.hpp"

namespace deltarelay::config {
namespace {

const char* kind_name(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return "a single value";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
  }
  return "unknown";
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

}  // namespace

MapReader::MapReader(const YamlNode& node, std::string path, Findings& findings)
    : node_(node), path_(std::move(path)), findings_(findings), is_map_(node.kind == YamlNode::Kind::map) {
  if (is_map_) return;
  const std::string what = path_.empty() ? std::string("the file") : path_.substr(0, path_.size() - 1);
  findings_.add(node.at, what + ": must be a map of keys, not " + kind_name(node.kind));
}

const YamlNode::Entry* MapReader::find(std::string_view key) const {
  for (const auto& entry : node_.entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Position MapReader::at(std::string_view key) const {
  const auto* entry = find(key);
  return entry != nullptr ? entry->value.at : node_.at;
}

const YamlNode* MapReader::node(std::string_view key) {
  known_.push_back(key);
  const auto* entry = find(key);
  if (entry == nullptr) return nullptr;
  if (entry->value.kind == YamlNode::Kind::null) {
    findings_.add(entry->at, path_ + std::string(key) + ": has no value");
    return nullptr;
  }
  return &entry->value;
}

const YamlNode* MapReader::required(std::string_view key) {
  const YamlNode* value = node(key);
  if (is_map_ && find(key) == nullptr) findings_.add(node_.at, "key \"" + path_ + std::string(key) + "\" is missing");
  return value;
}

const std::vector<YamlNode>& MapReader::list(std::string_view key) {
  static const std::vector<YamlNode> none;
  const YamlNode* value = node(key);
  if (value == nullptr) return none;
  if (value->kind != YamlNode::Kind::list) {
    findings_.add(value->at, path_ + std::string(key) + ": must be a list, not " + kind_name(value->kind));
    return none;
  }
  return value->items;
}

const YamlNode* MapReader::scalar(std::string_view key) {
  const YamlNode* value = node(key);
  if (value == nullptr || value->kind == YamlNode::Kind::scalar) return value;
  findings_.add(value->at, path_ + std::string(key) + ": must be a single value, not " + kind_name(value->kind));
  return nullptr;
}

void MapReader::text(std::string_view key, std::string& out) {
  const YamlNode* value = scalar(key);
  if (value == nullptr) return;
  if (value->text.empty()) {
    refuse(key, "is empty");
    return;
  }
  // They cannot be seen in a file, come in by escapes in quotes, and would reach terminals, logs and C functions.
  if (std::any_of(value->text.begin(), value->text.end(), is_control)) {
    refuse(key, "contains a control character");
    return;
  }
  out = value->text;
}

void MapReader::required_text(std::string_view key, std::string& out) {
  if (is_map_ && find(key) == nullptr) {
    (void)required(key);
    return;
  }
  text(key, out);
}

void MapReader::path(std::string_view key, const std::filesystem::path& base, std::filesystem::path& out) {
  std::string given;
  text(key, given);
  if (!given.empty()) out = (base / given).lexically_normal();
}

void MapReader::required_path(std::string_view key, const std::filesystem::path& base, std::filesystem::path& out) {
  std::string given;
  required_text(key, given);
  if (!given.empty()) out = (base / given).lexically_normal();
}

template <class T, class Parse, class Show>
void MapReader::bounded(std::string_view key, T& out, T least, T most, Parse parse, Show show) {
  const YamlNode* value = scalar(key);
  if (value == nullptr) return;
  const auto parsed = parse(value->text);
  if (!parsed) {
    refuse_value(key, *value, parsed.error().why);
  } else if (*parsed < least || *parsed > most) {
    refuse_value(key, *value, "is not in " + show(least) + " to " + show(most));
  } else {
    out = *parsed;
  }
}

void MapReader::count(std::string_view key, std::uint32_t& out, std::uint32_t least, std::uint32_t most) {
  std::uint64_t wide = out;
  count(key, wide, least, most);
  out = static_cast<std::uint32_t>(wide);
}

void MapReader::count(std::string_view key, std::uint64_t& out, std::uint64_t least, std::uint64_t most) {
  bounded(key, out, least, most, parse_count, [](std::uint64_t n) { return std::to_string(n); });
}

void MapReader::size(std::string_view key, std::uint64_t& out, std::uint64_t least, std::uint64_t most) {
  bounded(key, out, least, most, parse_size, size_text);
}

void MapReader::duration(std::string_view key, std::chrono::nanoseconds& out, std::chrono::nanoseconds least,
                         std::chrono::nanoseconds most) {
  bounded(key, out, least, most, parse_duration, duration_text);
}

void MapReader::duration(std::string_view key, std::chrono::milliseconds& out, std::chrono::milliseconds least,
                         std::chrono::milliseconds most) {
  std::chrono::nanoseconds fine = out;
  duration(key, fine, least, most);
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(fine);
  if (whole == fine) {
    out = whole;
  } else {
    refuse(key, "is not a whole number of milliseconds");
  }
}

void MapReader::rate(std::string_view key, topology::Rate& out) {
  constexpr topology::Rate most{1'000'000'000'000'000};
  bounded(key, out, topology::Rate{1}, most, parse_rate, [](topology::Rate r) { return rate_text(r); });
}

void MapReader::share(std::string_view key, double& out) {
  bounded(key, out, 1e-9, 1.0, parse_percent, share_text);
}

void MapReader::decimal(std::string_view key, double& out) {
  bounded(key, out, 0.0, 1e12, parse_decimal, share_text);
}

void MapReader::flag(std::string_view key, bool& out) {
  const YamlNode* value = scalar(key);
  if (value == nullptr) return;
  const auto parsed =
      value->quoted ? Parsed<bool>(BadValue{"is quoted text; write true or false"}) : parse_flag(value->text);
  if (parsed) {
    out = *parsed;
  } else {
    refuse_value(key, *value, parsed.error().why);
  }
}

void MapReader::refuse(std::string_view key, const std::string& message) {
  findings_.add(at(key), path_ + std::string(key) + ": " + message);
}

void MapReader::refuse_value(std::string_view key, const YamlNode& value, const std::string& why) {
  findings_.add(value.at, path_ + std::string(key) + ": " + shown(value.text) + " " + why);
}

void MapReader::refuse_choice(std::string_view key, const YamlNode& value, const std::vector<std::string_view>& names) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    all += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    all += names[i];
  }
  refuse_value(key, value, "is not one of " + all);
}

void MapReader::finish() {
  for (const auto& entry : node_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    const std::string near = findings_.size() < suggestions_max ? did_you_mean(entry.key, known_) : std::string();
    findings_.add(entry.at, "unknown key " + shown(entry.key) + near);
  }
}

}  // namespace deltarelay::config
