// See printable.hpp. Works on the text before it is parsed: there, control characters have only these few spellings.
#include "tools/relayctl/printable.hpp"

#include <charconv>

namespace deltarelay::relayctl {
namespace {

/// C0, DEL and C1.
bool is_control(unsigned code_point) {
  return code_point < 0x20 || (code_point >= 0x7f && code_point <= 0x9f);
}

/// `\u001b` and the like at the start of `text`.
bool escapes_control(std::string_view text) {
  if (text.size() < 6 || text[1] != 'u') return false;
  unsigned code_point = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, code_point, 16);
  return error == std::errc{} && end == text.data() + 6 && is_control(code_point);
}

/// A C1 control as UTF-8, at the start of `text`.
bool is_c1(std::string_view text) {
  return text.size() >= 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) >= 0x80 &&
         static_cast<unsigned char>(text[1]) <= 0x9f;
}

}  // namespace

std::string without_controls(std::string_view body) {
  std::string clean;
  clean.reserve(body.size());
  for (std::size_t at = 0; at < body.size(); ++at) {
    const std::string_view rest = body.substr(at);
    if (rest[0] == '\x7f') {
      clean += '?';
    } else if (is_c1(rest)) {
      clean += '?';
      at += 1;
    } else if (rest[0] != '\\' || rest.size() < 2) {
      clean += rest[0];
    } else if (escapes_control(rest)) {
      clean += '?';
      at += 5;
    } else if (std::string_view("bfnrt").find(rest[1]) != std::string_view::npos) {
      clean += ' ';
      at += 1;
    } else {  // both characters, so that the second of `\\` begins nothing
      clean += rest.substr(0, 2);
      at += 1;
    }
  }
  return clean;
}

}  // namespace deltarelay::relayctl
