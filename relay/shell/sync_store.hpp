// Block sync on this host's disk: as a child, from a manifest to a whole image; as a parent, digests, files and blocks.
//
// SyncReceiver: state thread, except apply_blocks() (apply threads). The read_… functions: any thread, blocking.
// A block is written only when its digest is one that this host wants; what a parent sends is never believed.
#pragma once

#include <functional>
#include <set>

#include "relay/core/actions.hpp"
#include "relay/shell/host_store.hpp"

namespace deltarelay::relay {

class SyncReceiver {
 public:
  explicit SyncReceiver(HostStore& store) : store_(store) {}

  /// First step: checks the manifest's records and opens (or makes) an image of their layout. No block is written.
  /// nullopt: go on with begin(), once no engine reads the image.
  [[nodiscard]] std::optional<SyncFailed> prepare(const PrepareSync& action);
  /// Second step: from here on this host is of no version, durably, until save(). Hashes the image. SyncPrepared or
  /// SyncFailed.
  [[nodiscard]] Event begin(const std::atomic<bool>& cancel);

  /// A piece of the table, which may come before begin() has hashed. Then compare(). SyncFailed when it does not fit.
  [[nodiscard]] std::optional<Event> store_digests(const StoreSyncDigests& action);
  /// SyncCompared or SyncFailed once table and hashes are whole; nullopt before.
  [[nodiscard]] std::optional<Event> compare();
  /// Error text, or empty. Files that the manifest does not name, or names with another content, are refused. What
  /// comes before begin(), while engines may still read the image, is kept in memory and written there.
  [[nodiscard]] std::string apply_file(const ApplySyncFile& action);
  /// Whether every companion file of the manifest is there.
  [[nodiscard]] bool files_complete() const { return active_ && files_missing_.empty(); }
  /// A manifest was taken and files of it are still to come: children cannot be given them yet.
  [[nodiscard]] bool waits_for_files() const { return active_ && !files_missing_.empty(); }
  /// Forgets the manifest: what is still asked for it fails or does nothing.
  void give_up();
  /// The image is the manifest's version.
  [[nodiscard]] CommitSaved save(const SaveSynced& action);

 private:
  [[nodiscard]] StoreResult<void> write_file(const codec::FilePayload& file);

  HostStore& store_;
  bool active_ = false, begun_ = false;
  SyncTarget target_;
  std::vector<codec::Digest> found_;
  std::set<std::string> files_missing_;
  std::vector<codec::FilePayload> early_files_;
  std::uint64_t early_bytes_ = 0;
};

/// Writes the blocks whose content is wanted (events.hpp, ApplySyncBlocks).
[[nodiscard]] SyncBlocksApplied apply_sync_blocks(HostStore& store, const ApplySyncBlocks& action);

/// The digest table that children sync to: of the version being synced to, else of the committed one. Null when there
/// is neither.
[[nodiscard]] std::shared_ptr<const std::vector<codec::Digest>> sync_digests(const HostStore& store);
/// One companion file as END names it; nullopt when it has not the stated content (now).
[[nodiscard]] std::optional<SyncFile> read_sync_file(const HostStore& store, const codec::CompanionFile& named);
struct ServedBlocks {
  std::vector<SyncBlocks> messages;  ///< each within a frame's payload limit
  std::vector<std::uint64_t> unavailable;
};
[[nodiscard]] ServedBlocks read_sync_blocks(const HostStore& store, std::vector<std::uint64_t> ordinals);

}  // namespace deltarelay::relay
