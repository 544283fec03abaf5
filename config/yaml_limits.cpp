#include "config/yaml_limits.hpp"

#include <array>
#include <cstdio>
#include <string>

#include "config/yaml_doc.hpp"

namespace deltarelay::config {
namespace {

/// Length of the UTF-8 sequence at the front of `text`; 0 if it is none (overlong forms and surrogates are none).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

/// Walks the text once. Comments are left out of the nesting only; indicators count wherever they stand, so that
/// nothing can be hidden from the count by text that looks like a comment or a quotation here and is none to the
/// parser.
class Scan {
 public:
  Scan(std::string_view text, Findings& findings) : text_(text), findings_(findings) {}

  bool run() {
    for (std::size_t i = 0; i < text_.size();) {
      const std::size_t length = utf8_length(text_.substr(i));
      if (length == 0) return refuse("not valid UTF-8");
      if (length == 1 && !check_ascii(text_[i], i > 0 ? text_[i - 1] : '\n')) return false;
      if (text_[i] == '\r' && text_.substr(i + 1, 1) != "\n")
        return refuse("carriage return without a line feed; end lines with LF or CRLF");
      at_.column += length;
      if (text_[i] == '\n') at_ = {at_.line + 1, 1};
      i += length;
    }
    return true;
  }

 private:
  bool refuse(std::string why) {
    findings_.add(at_, std::move(why));
    return false;
  }

  bool check_ascii(char c, char before) {
    const auto value = static_cast<unsigned char>(c);
    if (value == 0) return refuse("NUL byte; is this a text file?");
    if ((value < 0x20 && c != '\n' && c != '\r' && c != '\t') || value == 0x7f) {
      std::array<char, 40> text{};
      std::snprintf(text.data(), text.size(), "control character 0x%02x", value);
      return refuse(text.data());
    }
    const bool fresh = before == ' ' || before == '\n' || before == '\r';
    if (c == '#' && fresh) comment_ = true;
    if (c == '\n') comment_ = false;
    if (c == '\t' && !comment_) return refuse("tab; YAML wants spaces");
    if (!comment_ && !check_nesting(c)) return false;
    const bool indicator =
        (c == '-' && fresh) || std::string_view(",[]{}:?!&*%|>\"'").find(c) != std::string_view::npos;
    if (indicator && ++indicators_ > yaml_indicators_max) {
      return refuse("more than " + std::to_string(yaml_indicators_max) + " entries; write hosts as ranges");
    }
    return true;
  }

  bool check_nesting(char c) {
    if ((c == ']' || c == '}') && depth_ > 0) --depth_;
    if ((c == '[' || c == '{') && ++depth_ > yaml_depth_max) {
      return refuse("nested more than " + std::to_string(yaml_depth_max) + " levels deep");
    }
    return true;
  }

  std::string_view text_;
  Findings& findings_;
  Position at_{1, 1};
  bool comment_ = false;
  std::size_t depth_ = 0, indicators_ = 0;
};

}  // namespace

bool within_yaml_limits(std::string_view text, Findings& findings) {
  if (text.size() > yaml_bytes_max) {
    findings.add({}, "larger than " + std::to_string(yaml_bytes_max) + " bytes; is this the right file?");
    return false;
  }
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.substr(0, byte_order_mark.size()) == byte_order_mark) text.remove_prefix(byte_order_mark.size());
  return Scan(text, findings).run();
}

}  // namespace deltarelay::config
