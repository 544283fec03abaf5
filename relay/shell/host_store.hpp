// What one host holds: its state directory (lock, ledger, log, slots) and its image, for the blocking work that the
// shell gives to its threads.
//
// Threads: the ledger belongs to the state thread (whoever runs the functions of image_opening, refit_store, sync_store
// and root_store, one at a time); image(), table() and sync_target() may be called from anywhere and return what was
// current then. Lives as long as every thread that uses it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codec/record.hpp"
#include "codec/signature.hpp"
#include "relay/core/actions.hpp"
#include "relay/store/applier.hpp"
#include "relay/store/digest_table.hpp"
#include "relay/store/image.hpp"
#include "relay/store/ledger.hpp"
#include "relay/store/log.hpp"

namespace deltarelay::relay {

/// An open image and one apply worker a thread.
class OpenImage {
 public:
  OpenImage(std::unique_ptr<Image> image, std::vector<std::unique_ptr<ApplyWorker>> workers)
      : image_(std::move(image)), free_(std::move(workers)) {}
  [[nodiscard]] Image& image() const noexcept { return *image_; }
  [[nodiscard]] const codec::Layout& layout() const noexcept { return *image_->layout(); }

  /// A worker for the time of one call; one is always there, since no more threads apply than there are workers.
  template <class Use>
  [[nodiscard]] ApplyOutcome with_worker(const Use& use) {
    std::unique_ptr<ApplyWorker> worker = take();
    ApplyOutcome outcome = use(*worker);
    give_back(std::move(worker));
    return outcome;
  }

 private:
  std::unique_ptr<ApplyWorker> take();
  void give_back(std::unique_ptr<ApplyWorker> worker);

  std::unique_ptr<Image> image_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ApplyWorker>> free_;
};

/// The version that block sync makes of the image.
struct SyncTarget {
  codec::RecordPtr layout_record, end_record;
  codec::EndPayload end;
  std::vector<codec::Digest> digests;
};

struct HostStoreOptions {
  std::filesystem::path state_dir, image_dir;
  std::string node;
  codec::MeshId mesh;
  std::uint32_t block_bytes = 0;
  unsigned apply_threads = 1;
  bool is_root = false;
  /// Where boot count and epoch begin without a ledger: milliseconds since 1970, so that they are above those of a life
  /// whose ledger was lost, be it a moment ago. Both grow by one a start, slower than the clock.
  std::uint64_t first_boot = 0;
  LogLimits log;
  /// What an operator may want to read and no event tells. Called from any thread that uses the store.
  std::function<void(const Note&)> note = [](const Note&) {};
};

class HostStore {
 public:
  /// Locks the state directory (making it if need be), loads the ledger and of the log what the root signed, and counts
  /// this start (a root's epoch rises with it) durably. Errors: already_locked, corrupt (a damaged ledger; a ledger of
  /// another node or mesh), and those of the file system.
  [[nodiscard]] static StoreResult<std::unique_ptr<HostStore>> open(HostStoreOptions options,
                                                                    codec::ContentVerifier verifier,
                                                                    std::optional<codec::ContentSigner> signer);

  [[nodiscard]] const HostStoreOptions& options() const noexcept { return options_; }
  [[nodiscard]] const codec::ContentVerifier& verifier() const noexcept { return verifier_; }
  [[nodiscard]] const codec::ContentSigner* signer() const noexcept { return signer_ ? &*signer_ : nullptr; }
  [[nodiscard]] RefitLog& log() const noexcept { return *log_; }

  // --- state thread
  [[nodiscard]] LedgerRecord& record() noexcept { return record_; }
  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }
  /// Makes record() durable; on failure record() is put back to what the disk has.
  [[nodiscard]] StoreResult<void> save_ledger();
  [[nodiscard]] std::filesystem::path slot_path(unsigned worker) const;
  /// What deltarelay.json could not be made to say yet (marker_store.hpp).
  std::optional<ImageMarker> marker_due;
  /// The files of the image without their tensors' bytes, as they were when it was last opened (image_shape.hpp).
  [[nodiscard]] std::filesystem::path shape_path() const { return shape_file(options_.state_dir); }
  [[nodiscard]] static std::filesystem::path shape_file(const std::filesystem::path& state_dir) {
    return state_dir / "image-shape";
  }
  /// The image directory's lock, held from the first call on: an image can be opened anew without letting go of it.
  [[nodiscard]] StoreResult<File> lock_image();
  void note(Note::Level level, std::string code, std::string text) const {
    options_.note(Note{level, std::move(code), std::move(text)});
  }

  // --- any thread
  [[nodiscard]] std::shared_ptr<OpenImage> image() const;
  [[nodiscard]] std::shared_ptr<DigestTable> table() const;
  [[nodiscard]] std::shared_ptr<const SyncTarget> sync_target() const;
  void set_image(std::shared_ptr<OpenImage> image);
  /// The committed version's digests; targets of the refit in flight come on top.
  void set_table(std::shared_ptr<DigestTable> table);
  void set_sync_target(std::shared_ptr<const SyncTarget> target);

 private:
  HostStore(HostStoreOptions options, codec::ContentVerifier verifier, std::optional<codec::ContentSigner> signer,
            File lock)
      : options_(std::move(options)),
        verifier_(std::move(verifier)),
        signer_(std::move(signer)),
        lock_(std::move(lock)),
        ledger_(options_.state_dir) {}
  [[nodiscard]] StoreResult<void> load_ledger();

  HostStoreOptions options_;
  codec::ContentVerifier verifier_;
  std::optional<codec::ContentSigner> signer_;
  File lock_;
  std::optional<File> image_lock_;
  Ledger ledger_;
  LedgerRecord record_, saved_;
  std::unique_ptr<RefitLog> log_;
  mutable std::mutex mutex_;
  std::shared_ptr<OpenImage> image_;
  std::shared_ptr<DigestTable> table_;
  std::shared_ptr<const SyncTarget> sync_target_;
};

/// The stable word for a failure, as node records and notes carry it: DISK_FULL, READ_ONLY, IMAGE_LOCKED, IO_ERROR, …
[[nodiscard]] std::string reason_code(const StoreError& error);
/// The record in a ledger's bytes; null when there is none or it is no whole record.
[[nodiscard]] codec::RecordPtr record_from_bytes(const std::vector<std::byte>& bytes);
/// The committed version as the core knows it, from the ledger.
[[nodiscard]] ImageState image_state_of(const LedgerRecord& record);

}  // namespace deltarelay::relay
