// Columns that line up, whatever is in them: UTF-8 and colours count as what the eye sees.
//
// A Table is filled row by row and turned into text once; it knows nothing of where the text goes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace deltarelay::relayctl {

enum class Align : bool { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  /// Columns without a title are kept; a table whose titles are all empty has no title line.
  explicit Table(std::vector<Column> columns, std::string indent = "");

  /// Missing cells are empty; cells past the last column are an error of ours (asserted).
  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// One line per row, each with a line end; two spaces between columns, none at the end of a line.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::string indent_;
  std::vector<std::vector<std::string>> rows_;
};

/// Cells that `text` takes on a terminal: code points, escape sequences left out.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// `text` with spaces up to `width` cells; longer text stays whole.
[[nodiscard]] std::string padded(std::string_view text, std::size_t width, Align align = Align::left);

}  // namespace deltarelay::relayctl
