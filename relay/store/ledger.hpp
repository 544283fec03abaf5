// The ledger: what this node states of itself, durably. A version counts as committed when the ledger says so.
//
// Two files in the state directory, each replaced whole (temporary file, fsync, rename, fsync of the directory):
//   ledger              one line with format and checksum, then JSON: an operator can read it
//   version-<n>.state   the committed version's digest table, END and LAYOUT records; written before the ledger names it
// A ledger that is damaged is an error with a name, never a guess: the remedy (sync again) costs minutes, a wrong stated
// version costs a training run. Not thread-safe: one thread owns it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "codec/digest.hpp"
#include "codec/record.hpp"
#include "relay/store/file_ops.hpp"

namespace deltarelay::relay {

using codec::Digest;
using codec::Epoch;
using codec::MeshId;
using codec::RecordPtr;
using codec::Version;

inline constexpr std::size_t history_entries_max = 64;

struct HistoryEntry {
  Version version{}, base{};
  std::uint64_t payload_bytes = 0, changed_blocks = 0;
  std::int64_t began_unix_ms = 0, ended_unix_ms = 0;
  std::string result;                 ///< committed, aborted, synced
  std::vector<std::string> left_out;  ///< the root's: nodes that were not waited for
  friend bool operator==(const HistoryEntry&, const HistoryEntry&) = default;
};

/// The root's own memory of the refit in hand, durable before the first frame and before any decision leaves.
struct Manifest {
  enum class State : std::uint8_t { none, open, decided_commit, decided_abort };
  Version version{}, base{};
  State state = State::none;
  std::string why;
  Version highest{};  ///< highest version ever used, aborted ones included
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

struct LedgerState {
  MeshId mesh;
  std::string node;
  std::uint64_t boot_count = 0;
  Epoch epoch{};                ///< highest seen; a lower one is refused
  Version committed{}, floor{};
  Digest image, layout;
  std::string state_file;       ///< name within the state directory; empty: nothing committed
  std::string kernel_boot_id;   ///< of the boot in which `applying` was set
  bool applying = false;        ///< the image may hold blocks of another version
  std::vector<HistoryEntry> history;  ///< oldest first
  Manifest manifest;
  friend bool operator==(const LedgerState&, const LedgerState&) = default;
};

/// All that proves a committed version to a child.
struct CommittedVersion {
  Version version{};
  std::vector<Digest> digests;  ///< by ordinal
  RecordPtr end_record, layout_record;  ///< may be null in offline use
};

class Ledger {
 public:
  /// Reads the ledger of `directory`, or starts a new one in memory (nothing is written). Errors: ledger_corrupt, ledger_foreign.
  [[nodiscard]] static StoreResult<Ledger> open(FileOps& files, std::filesystem::path directory, const MeshId& mesh, std::string node);
  /// For offline tools: whatever mesh and node it is of. Errors: also ENOENT.
  [[nodiscard]] static StoreResult<Ledger> inspect(FileOps& files, std::filesystem::path directory);

  [[nodiscard]] const LedgerState& state() const noexcept { return state_; }

  /// Counts this start, durably.
  [[nodiscard]] StoreResult<void> begin_boot();
  /// True when blocks were being written in an earlier boot of the machine: page cache may have been lost, hash the image.
  [[nodiscard]] bool power_was_cut_while_applying(const std::string& kernel_boot_id) const;
  [[nodiscard]] StoreResult<void> set_applying(bool applying, const std::string& kernel_boot_id);
  /// Never lowers the epoch.
  [[nodiscard]] StoreResult<void> see_epoch(Epoch epoch);
  [[nodiscard]] StoreResult<void> save_manifest(const Manifest& manifest);
  [[nodiscard]] StoreResult<void> add_history(HistoryEntry entry);
  /// Makes `next` the committed version, raises the floor, clears `applying`. REQUIRES the image to be durable.
  [[nodiscard]] StoreResult<void> commit(const CommittedVersion& next, const Digest& layout, HistoryEntry entry);
  /// States that there is no whole version (before a block sync overwrites the image). The floor stays.
  [[nodiscard]] StoreResult<void> forget_committed();
  [[nodiscard]] StoreResult<CommittedVersion> load_committed() const;

 private:
  Ledger(FileOps& files, std::filesystem::path directory, LedgerState state);
  [[nodiscard]] StoreResult<void> save(LedgerState next);
  FileOps* files_;
  std::filesystem::path directory_;
  LedgerState state_;
};

/// /proc/sys/kernel/random/boot_id; empty when it cannot be read.
[[nodiscard]] std::string current_kernel_boot_id();

}  // namespace deltarelay::relay
