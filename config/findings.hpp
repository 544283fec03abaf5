// What is wrong with a file, and where: collected, sorted, and shown all at once.
//
// Layer: config. A loader adds findings and goes on, so that an operator sees every mistake in one run.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace deltarelay::config {

/// A place in a file, both counted from 1, columns in bytes; 0 means the file as a whole.
struct Position {
  std::size_t line = 0, column = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Finding {
  std::string file;
  Position at;
  std::string message;
  /// "FILE:LINE:COLUMN: error: MESSAGE", without the position where there is none.
  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const Finding&, const Finding&) = default;
};

class Findings {
 public:
  explicit Findings(std::string file) : file_(std::move(file)) {}
  void add(Position at, std::string message);
  /// Takes over the findings about another file.
  void append(const Findings& other);
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return list_.size(); }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// By file (in the order they came in), line and column; without repetitions.
  [[nodiscard]] std::vector<Finding> sorted() const;
  /// One line each, with a line end after each.
  [[nodiscard]] std::string text() const;

 private:
  std::string file_;
  std::vector<Finding> list_;
};

}  // namespace deltarelay::config
