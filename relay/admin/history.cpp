#include "relay/admin/history.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace deltarelay::relay::admin {

void History::put(VersionRow row) {
  const auto older =
      std::find_if(rows_.begin(), rows_.end(), [&](const VersionRow& r) { return r.version <= row.version; });
  if (older != rows_.end() && older->version == row.version) {
    *older = std::move(row);
    return;
  }
  rows_.insert(older, std::move(row));
  if (rows_.size() > history_versions_max) rows_.pop_back();
}

const VersionRow* History::find(Version version) const noexcept {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const VersionRow& r) { return r.version == version; });
  return found == rows_.end() ? nullptr : &*found;
}

std::string History::text() const {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  for (const VersionRow& row : rows_) {
    VersionDocument document;
    document.at = row.at.value_or(Time{});
    document.version = row;
    std::string line = to_json(document);
    bytes += line.size() + 1;
    if (bytes > history_bytes_max) break;  // rows that name thousands of nodes left out
    lines.push_back(std::move(line));
  }
  std::string out;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    out += *line;
    out += '\n';
  }
  return out;
}

History::Parsed History::parse(std::string_view text) {
  Parsed parsed;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    VersionDocument document;
    // Version 0 means "none" everywhere: a row for it could only come from a line without its members.
    if (!from_json(line, document).empty() || codec::raw(document.version.version) == 0) {
      ++parsed.lines_skipped;
    } else {
      parsed.history.put(std::move(document.version));
    }
  }
  return parsed;
}

StoreResult<History::Parsed> load_history(FileOps& ops, const std::filesystem::path& file) {
  const auto content = read_file(ops, file, history_bytes_max);
  if (!content) {
    if (content.error().code == boost::system::errc::no_such_file_or_directory) return History::Parsed{};
    return content.error();
  }
  return History::parse({reinterpret_cast<const char*>(content->data()), content->size()});
}

StoreResult<void> save_history(FileOps& ops, const std::filesystem::path& file, std::string_view text) {
  return replace_file(ops, file, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace deltarelay::relay::admin
