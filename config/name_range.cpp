#include "config/name_range.hpp"

#include <charconv>
#include <optional>

namespace deltarelay::config {
namespace {

struct Piece {
  std::string literal;  ///< before the range
  bool range = false;
  std::uint64_t first = 0, last = 0;
  std::size_t width = 0;  ///< of the numbers, filled up with zeros; 0: as they are
};

constexpr const char* hint = "has a malformed range; write for example {000..127}";

std::optional<std::uint64_t> number(std::string_view text) {
  constexpr std::size_t digits_max = 9;
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.size() > digits_max || end.ec != std::errc{} || end.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

Parsed<Piece> parse_range(std::string literal, std::string_view inside) {
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) return BadValue{hint};
  const std::string_view from = inside.substr(0, dots), to = inside.substr(dots + 2);
  const auto first = number(from), last = number(to);
  if (!first || !last) return BadValue{hint};
  if (*last < *first) return BadValue{"has a range that counts down"};
  const bool padded = from.size() > 1 && from.front() == '0';
  const bool last_padded = to.size() > 1 && to.front() == '0';
  if ((padded || last_padded) && to.size() != from.size())
    return BadValue{"has a range whose two numbers differ in width"};
  return Piece{std::move(literal), true, *first, *last, padded ? from.size() : 0};
}

Parsed<std::vector<Piece>> split(std::string_view pattern) {
  if (pattern.size() > pattern_bytes_max)
    return BadValue{"is longer than " + std::to_string(pattern_bytes_max) + " bytes"};
  std::vector<Piece> pieces;
  while (!pattern.empty()) {
    const std::size_t open = pattern.find('{');
    std::string literal(pattern.substr(0, open));
    if (literal.find('}') != std::string::npos) return BadValue{hint};
    if (open == std::string_view::npos) {
      pieces.push_back(Piece{std::move(literal), false, 0, 0, 0});
      break;
    }
    const std::size_t close = pattern.find('}', open);
    if (close == std::string_view::npos) return BadValue{hint};
    auto piece = parse_range(std::move(literal), pattern.substr(open + 1, close - open - 1));
    if (!piece) return piece.error();
    pieces.push_back(std::move(*piece));
    pattern.remove_prefix(close + 1);
  }
  return pieces;
}

/// All ranges of a pattern count together; without any it stands for one text.
Parsed<std::uint64_t> common_length(const std::vector<Piece>& pieces) {
  std::optional<std::uint64_t> length;
  for (const Piece& piece : pieces) {
    if (!piece.range) continue;
    const std::uint64_t count = piece.last - piece.first + 1;
    if (length && *length != count) return BadValue{"has ranges of different lengths"};
    length = count;
  }
  return length.value_or(1);
}

}  // namespace

bool has_range(std::string_view pattern) noexcept {
  return pattern.find_first_of("{}") != std::string_view::npos;
}

Parsed<std::uint64_t> range_length(std::string_view pattern) {
  const auto pieces = split(pattern);
  if (!pieces) return pieces.error();
  return common_length(*pieces);
}

Parsed<std::vector<std::string>> expand_ranges(std::string_view pattern, std::size_t most) {
  const auto pieces = split(pattern);
  if (!pieces) return pieces.error();
  const auto length = common_length(*pieces);
  if (!length) return length.error();
  if (*length > most) return BadValue{"is a range of more than " + std::to_string(most)};
  std::vector<std::string> out;
  for (std::uint64_t i = 0; i < *length; ++i) {
    std::string text;
    for (const Piece& piece : *pieces) {
      text += piece.literal;
      if (!piece.range) continue;
      const std::string digits = std::to_string(piece.first + i);
      if (digits.size() < piece.width) text.append(piece.width - digits.size(), '0');
      text += digits;
    }
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace deltarelay::config
