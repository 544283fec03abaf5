#include "config/findings.hpp"

#include <algorithm>

namespace deltarelay::config {

std::string Finding::text() const {
  std::string out = file;
  if (at.line > 0) out.append(":").append(std::to_string(at.line)).append(":").append(std::to_string(at.column));
  return out.append(": error: ").append(message);
}

void Findings::add(Position at, std::string message) {
  list_.push_back({file_, at, std::move(message)});
}

void Findings::append(const Findings& other) {
  list_.insert(list_.end(), other.list_.begin(), other.list_.end());
}

std::vector<Finding> Findings::sorted() const {
  std::vector<std::string> files;
  for (const Finding& finding : list_) {
    if (std::find(files.begin(), files.end(), finding.file) == files.end()) files.push_back(finding.file);
  }
  std::vector<Finding> out;
  for (const std::string& file : files) {
    const auto first = out.size();
    std::copy_if(list_.begin(), list_.end(), std::back_inserter(out), [&](const Finding& f) { return f.file == file; });
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_sort(begin, out.end(), [](const Finding& a, const Finding& b) { return a.at < b.at; });
  }
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string Findings::text() const {
  std::string out;
  for (const Finding& finding : sorted()) out += finding.text() + '\n';
  return out;
}

}  // namespace deltarelay::config
