// The durable record of a node: what it has committed, what it knows of the last versions, and, on a root, which decision
// is open. Old or new after a crash, never a mixture; a damaged one is an error by name, never an empty one.
//
// One writer. The digest table is a file of its own, written before the ledger that names it: 16 bytes a block are too much
// to rewrite with each decision.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/digest.hpp"
#include "codec/types.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relay {

inline constexpr std::size_t history_versions_max = 64;

struct VersionHistory {
  codec::Version version{}, base{};
  std::int64_t began_unix_ms = 0, ended_unix_ms = 0;
  std::uint64_t dense_bytes = 0, payload_bytes = 0;
  std::uint64_t changed_elements = 0, changed_blocks = 0;
  std::string result;  ///< committed, aborted, or the reason of a failure
  std::vector<std::string> left_out;
  friend bool operator==(const VersionHistory&, const VersionHistory&) = default;
};

enum class ManifestState : std::uint8_t { open = 0, commit = 1, abort = 2 };
struct RootManifest {
  codec::Version version{}, base{};
  ManifestState state{};
  friend bool operator==(const RootManifest&, const RootManifest&) = default;
};

struct LedgerRecord {
  codec::MeshId mesh;
  std::string node;
  std::uint64_t boot_count = 0;
  codec::Epoch epoch{};
  codec::Version committed{};     ///< 0: no whole image
  codec::Digest image;            ///< digest of the digest table
  codec::Version highest_used{};  ///< no version up to this one may be used again
  std::string kernel_boot_id;     ///< differs from kernel_boot_id(): unsynced pages of the image may be lost
  std::vector<std::byte> end_record, layout_record;  ///< whole signed records of the committed version
  std::optional<RootManifest> manifest;
  std::vector<VersionHistory> history;  ///< oldest first
  friend bool operator==(const LedgerRecord&, const LedgerRecord&) = default;
};

/// /proc/sys/kernel/random/boot_id; empty when it cannot be read, which callers treat as "another boot".
[[nodiscard]] std::string kernel_boot_id();

class Ledger {
 public:
  explicit Ledger(std::filesystem::path directory, FileOps& ops = FileOps::real())
      : directory_(std::move(directory)), ops_(ops) {}

  /// nullopt when there is none yet. Errors: corrupt (also an unknown format), and those of the file system.
  [[nodiscard]] StoreResult<std::optional<LedgerRecord>> load();
  /// Durable on success. Keeps the last history_versions_max versions of the history.
  [[nodiscard]] StoreResult<void> save(LedgerRecord record);

  /// Writes the table of `version`, durable on success. Call before the save() that commits the version.
  [[nodiscard]] StoreResult<void> save_digests(codec::Version version, std::span<const codec::Digest> table);
  /// Errors: corrupt when the file's checksum or `expected`, the digest of the table, does not hold.
  [[nodiscard]] StoreResult<std::vector<codec::Digest>> load_digests(codec::Version version, const codec::Digest& expected);
  /// Removes the tables of all versions but these two.
  [[nodiscard]] StoreResult<void> remove_other_digests(codec::Version keep, codec::Version also_keep = {});

 private:
  std::filesystem::path directory_;
  FileOps& ops_;
};

}  // namespace deltarelay::relay
