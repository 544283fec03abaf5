// The one rule of well-formed UTF-8 that names are shown and checked by.
#pragma once

#include <cstddef>
#include <string_view>

namespace deltarelay::codec {

/// Bytes of the well-formed sequence at the front of `text` (Unicode, table 3-7: no overlong forms, no surrogates, nothing
/// past U+10FFFF), or 0 when there is none.
[[nodiscard]] constexpr std::size_t utf8_sequence_bytes(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && at(i) >= low && at(i) <= high;
  };
  if (text.empty()) return 0;
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80, high = first == 0xed ? 0x9f : 0xbf;
    return follows(1, low, high) && follows(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80, high = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

}  // namespace deltarelay::codec
