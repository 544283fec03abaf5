// The versions that this mesh has had: a list in memory, and a file of one JSON document a line.
//
// Layer: relay/admin. History is a pure value on its owner's thread; load_history() and save_history() touch the disk
// and belong on a thread that may block. The file is replaced as a whole, so a crash leaves the old or the new one.
// Lines that cannot be read are skipped and counted: history is for people, and one bad line must not stop a daemon.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "relay/admin/documents.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relay::admin {

inline constexpr std::size_t history_versions_max = 1000;
inline constexpr std::uint64_t history_bytes_max = 64u << 20;

class History {
 public:
  /// Adds the row, or replaces the row of the same version. Past history_versions_max the oldest goes.
  void put(VersionRow row);

  /// Newest first.
  [[nodiscard]] const std::vector<VersionRow>& rows() const noexcept { return rows_; }
  /// Null when the version is not in the list. Valid until the next put().
  [[nodiscard]] const VersionRow* find(Version version) const noexcept;

  /// One document a line, oldest first; the oldest are left out of a text past history_bytes_max.
  [[nodiscard]] std::string text() const;
  struct Parsed;
  [[nodiscard]] static Parsed parse(std::string_view text);

 private:
  std::vector<VersionRow> rows_;
};

struct History::Parsed {
  History history;
  std::size_t lines_skipped = 0;
};

/// A missing file is an empty history.
[[nodiscard]] StoreResult<History::Parsed> load_history(FileOps& ops, const std::filesystem::path& file);
/// Durable when this returns success. `text` is History::text().
[[nodiscard]] StoreResult<void> save_history(FileOps& ops, const std::filesystem::path& file, std::string_view text);

}  // namespace deltarelay::relay::admin
