// See table.hpp.
#include "tools/relayctl/table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace deltarelay::relayctl {

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == 0x1b) {  // ESC [ … m
      while (at < text.size() && text[at] != 'm') ++at;
      continue;
    }
    if ((byte & 0xC0U) != 0x80U) ++width;  // continuation bytes belong to the code point before
  }
  return width;
}

std::string padded(std::string_view text, std::size_t width, Align align) {
  const std::size_t used = display_width(text);
  const std::string fill(used < width ? width - used : 0, ' ');
  return align == Align::left ? std::string(text) + fill : fill + std::string(text);
}

Table::Table(std::vector<Column> columns, std::string indent)
    : columns_(std::move(columns)), indent_(std::move(indent)) {}

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  bool titled = false;
  for (const auto& column : columns_) {
    widths.push_back(display_width(column.title));
    titled = titled || !column.title.empty();
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string all;
  const auto put = [&](const auto& cell_of) {
    std::string line = indent_;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += "  ";
      line += padded(cell_of(i), widths[i], columns_[i].align);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    all += line;
    all += '\n';
  };
  if (titled) put([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) put([&](std::size_t i) -> const std::string& { return row[i]; });
  return all;
}

}  // namespace deltarelay::relayctl
