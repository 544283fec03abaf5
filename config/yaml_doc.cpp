#include "config/yaml_doc.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <unordered_map>

#include "config/yaml_limits.hpp"

namespace deltarelay::config {
namespace {

Position position(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {static_cast<std::size_t>(mark.line) + 1, static_cast<std::size_t>(mark.column) + 1};
}

/// Ends the parser's run from inside an event; never leaves this file.
struct Refused {
  Position at;
  std::string why;
};

/// Builds our tree from the parser's events, with the parser's own node tree (and its growth by aliases) left out.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(Findings& findings) : findings_(findings) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Refused{position(mark), "a second document; a configuration is one document"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { scalar(YamlNode::Kind::null, mark, "", false); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{position(mark), "aliases (*name) are not supported; write the value out"};
  }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    throw Refused{position(mark), "anchors (&name) are not supported; write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    // The parser marks plain scalars "?" and quoted ones "!".
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark, tag);
    const bool quoted = tag == "!";
    const bool is_null = !quoted && (value == "~" || value == "null" || value.empty());
    scalar(is_null ? YamlNode::Kind::null : YamlNode::Kind::scalar, mark, value, quoted);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    std::optional<YamlNode::Entry> entry;                ///< key read, value awaited
    std::unordered_map<std::string, std::size_t> lines;  ///< of the keys so far
    bool drop = false;                                   ///< the awaited value belongs to a doubled key
  };

  [[noreturn]] static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    throw Refused{position(mark), "tags (" + shown(tag) + ") are not supported"};
  }

  [[nodiscard]] bool wants_key() const {
    return !stack_.empty() && stack_.back().node.kind == YamlNode::Kind::map && !stack_.back().entry;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark, tag);
    if (wants_key()) throw Refused{position(mark), "a key must be a plain word"};
    if (stack_.size() >= yaml_depth_max) {
      throw Refused{position(mark), "nested more than " + std::to_string(yaml_depth_max) + " levels deep"};
    }
    stack_.emplace_back();
    stack_.back().node.kind = kind;
    stack_.back().node.at = position(mark);
  }

  void close() {
    YamlNode done = std::move(stack_.back().node);
    stack_.pop_back();
    attach(std::move(done));
  }

  void scalar(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& text, bool quoted) {
    if (wants_key()) {
      if (kind == YamlNode::Kind::null) throw Refused{position(mark), "a key is missing before ':'"};
      begin_entry(text, position(mark));
      return;
    }
    YamlNode node;
    node.kind = kind;
    node.at = position(mark);
    node.text = text;
    node.quoted = quoted;
    attach(std::move(node));
  }

  void begin_entry(const std::string& key, Position at) {
    Frame& frame = stack_.back();
    const auto [first, fresh] = frame.lines.emplace(key, at.line);
    if (!fresh)
      findings_.add(at, "key " + shown(key) + " appears twice (first at line " + std::to_string(first->second) + ")");
    frame.drop = !fresh;
    frame.entry.emplace();
    frame.entry->key = key;
    frame.entry->at = at;
  }

  void attach(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node.kind == YamlNode::Kind::list) {
      frame.node.items.push_back(std::move(node));
      return;
    }
    frame.entry->value = std::move(node);
    if (!frame.drop) frame.node.entries.push_back(std::move(*frame.entry));
    frame.entry.reset();
  }

  Findings& findings_;
  std::vector<Frame> stack_;
  YamlNode root_;
  std::size_t documents_ = 0;
};

}  // namespace

std::optional<YamlNode> parse_yaml(std::string_view text, Findings& findings) {
  if (!within_yaml_limits(text, findings)) return std::nullopt;
  Builder builder(findings);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    findings.add(refused.at, refused.why);
    return std::nullopt;
  } catch (const YAML::Exception& problem) {
    findings.add(position(problem.mark), "not valid YAML: " + problem.msg);
    return std::nullopt;
  }
  return builder.take();
}

std::optional<std::string> read_yaml_file(const std::filesystem::path& file, Findings& findings) {
  const auto close = [](std::FILE* f) { std::fclose(f); };
  const std::unique_ptr<std::FILE, decltype(close)> in(std::fopen(file.c_str(), "rb"), close);
  if (!in) {
    findings.add({}, std::string("cannot be opened: ") + std::strerror(errno));
    return std::nullopt;
  }
  // One byte more than allowed tells a file at the limit from one past it, whatever its size is said to be.
  std::string text(yaml_bytes_max + 1, '\0');
  errno = 0;
  text.resize(std::fread(text.data(), 1, text.size(), in.get()));
  if (std::ferror(in.get()) != 0) {
    findings.add({}, std::string("cannot be read: ") + std::strerror(errno));
    return std::nullopt;
  }
  return text;
}

std::string shown(std::string_view text) {
  constexpr std::size_t shown_max = 60;
  std::string out = "\"";
  for (const char c : text.substr(0, shown_max)) {
    if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  // Never end inside a UTF-8 sequence.
  if (text.size() > shown_max) {
    while (out.size() > 1 && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    if (out.size() > 1 && static_cast<unsigned char>(out.back()) >= 0xc0) out.pop_back();
    out += "...";
  }
  return out + "\"";
}

}  // namespace deltarelay::config
