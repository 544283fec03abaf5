#include "config/nearest_name.hpp"

#include <algorithm>
#include <cstddef>

namespace deltarelay::config {
namespace {

/// Edits (insert, remove, replace, swap of neighbours) that lead from one word to the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr std::size_t word_length_max = 64;
  if (word.size() > word_length_max) return {};
  std::string_view best;
  std::size_t best_distance = 3;
  for (const std::string_view name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < best_distance && distance * 2 <= name.size() && (distance < 2 || name.size() > 4)) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string_view near = nearest_name(word, known);
  return near.empty() ? std::string() : " (did you mean \"" + std::string(near) + "\"?)";
}

}  // namespace deltarelay::config
