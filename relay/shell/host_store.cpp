#include "relay/shell/host_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace deltarelay::relay {
namespace {

StoreResult<File> lock_state_directory(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return system_error(error.value(), "make directory", directory.string());
  const auto path = directory / "lock";
  File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640), path);
  if (file.descriptor() < 0) return system_error(errno, "lock", path.string());
  // flock, not a PID file: the kernel lets go of it when the holder dies, however it dies.
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return StoreError{make_error_code(store_errc::already_locked), "lock state directory", directory.string(), 0};
    return system_error(errno, "lock", path.string());
  }
  return file;
}

/// False when the path leads to another file by now, or to none.
bool is_still_there(const File& file) {
  struct stat open_now {
  }, named{};
  return ::fstat(file.descriptor(), &open_now) == 0 && ::lstat(file.path().c_str(), &named) == 0 &&
         open_now.st_dev == named.st_dev && open_now.st_ino == named.st_ino;
}

}  // namespace

std::unique_ptr<ApplyWorker> OpenImage::take() {
  const std::scoped_lock lock(mutex_);
  assert(!free_.empty());
  auto worker = std::move(free_.back());
  free_.pop_back();
  return worker;
}

void OpenImage::give_back(std::unique_ptr<ApplyWorker> worker) {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(worker));
}

StoreResult<std::unique_ptr<HostStore>> HostStore::open(HostStoreOptions options, codec::ContentVerifier verifier,
                                                        std::optional<codec::ContentSigner> signer) {
  auto lock = lock_state_directory(options.state_dir);
  if (!lock) return lock.error();
  std::unique_ptr<HostStore> store(
      new HostStore(std::move(options), std::move(verifier), std::move(signer), std::move(*lock)));
  if (auto loaded = store->load_ledger(); !loaded) return loaded.error();
  // Before anything is believed of the log: what the root did not sign neither explains blocks nor goes to children.
  auto log = RefitLog::open(
      store->options_.state_dir / "log", store->options_.log, FileOps::real(), [&store](const codec::Record& record) {
        return codec::verify_record_header(record.header, record.bytes, store->options_.mesh, store->verifier_)
            .has_value();
      });
  if (!log) return log.error();
  store->log_ = std::move(*log);
  return store;
}

StoreResult<void> HostStore::load_ledger() {
  auto found = ledger_.load();
  if (!found) return found.error();
  if (*found) {
    record_ = std::move(**found);
    if (record_.mesh != options_.mesh || record_.node != options_.node)
      return StoreError{make_error_code(store_errc::corrupt),
                        fmt::format("use the state of node \"{}\"{} for node \"{}\" in", record_.node,
                                    record_.mesh == options_.mesh ? "" : " of another mesh", options_.node),
                        options_.state_dir.string(), 0};
  }
  saved_ = record_;
  if (!*found) {
    constexpr std::uint64_t boot_count_max = std::uint64_t{1} << 42;  // first_of_boot() has room above it
    record_.boot_count = std::min(options_.first_boot, boot_count_max);
    if (options_.is_root) record_.epoch = Epoch{record_.boot_count};
  }
  record_.mesh = options_.mesh;
  record_.node = options_.node;
  ++record_.boot_count;
  // Whatever a predecessor still has on the way is of a lower epoch from now on.
  if (options_.is_root) record_.epoch = codec::next(record_.epoch);
  record_.kernel_boot_id = kernel_boot_id();
  return save_ledger();
}

StoreResult<void> HostStore::save_ledger() {
  auto saved = ledger_.save(record_);
  if (saved)
    saved_ = record_;
  else
    record_ = saved_;
  return saved;
}

std::filesystem::path HostStore::slot_path(unsigned worker) const {
  return options_.state_dir / fmt::format("slot-{}", worker);
}

StoreResult<File> HostStore::lock_image() {
  if (!image_lock_ || !is_still_there(*image_lock_)) {
    auto locked = Image::lock_directory(options_.image_dir);
    if (!locked) return locked.error();
    image_lock_ = std::move(*locked);
  }
  // A duplicate shares the lock: it ends with the last of them.
  File shared(::fcntl(image_lock_->descriptor(), F_DUPFD_CLOEXEC, 0), image_lock_->path());
  if (shared.descriptor() < 0) return system_error(errno, "lock", image_lock_->path().string());
  return shared;
}

std::shared_ptr<OpenImage> HostStore::image() const {
  const std::scoped_lock lock(mutex_);
  return image_;
}
std::shared_ptr<DigestTable> HostStore::table() const {
  const std::scoped_lock lock(mutex_);
  return table_;
}
std::shared_ptr<const SyncTarget> HostStore::sync_target() const {
  const std::scoped_lock lock(mutex_);
  return sync_target_;
}
void HostStore::set_image(std::shared_ptr<OpenImage> image) {
  const std::scoped_lock lock(mutex_);
  image_.swap(image);
}
void HostStore::set_table(std::shared_ptr<DigestTable> table) {
  const std::scoped_lock lock(mutex_);
  table_.swap(table);
}
void HostStore::set_sync_target(std::shared_ptr<const SyncTarget> target) {
  const std::scoped_lock lock(mutex_);
  sync_target_.swap(target);
}

std::string reason_code(const StoreError& error) {
  namespace errc = boost::system::errc;
  if (error.code == errc::no_space_on_device || error.code.value() == EDQUOT) return "DISK_FULL";
  // EPERM: the file is immutable (chattr +i) or append-only.
  if (error.code == errc::read_only_file_system || error.code == errc::permission_denied ||
      error.code == errc::operation_not_permitted)
    return "READ_ONLY";
  if (error.code == store_errc::read_only) return "READ_ONLY";
  if (error.code == store_errc::already_locked) return "IMAGE_LOCKED";
  if (error.code == store_errc::mapping_fault) return "MAPPING_FAULT";
  if (error.code == store_errc::replaced) return image_replaced;
  if (error.code == store_errc::symbolic_link || error.code == store_errc::hard_linked) return "NOT_OURS";
  if (error.code == store_errc::not_empty) return "IMAGE_DIR_NOT_EMPTY";
  if (error.code == store_errc::engine_reads) return engine_reads_code;
  if (error.code == store_errc::corrupt || error.code == store_errc::not_in_log) return "CORRUPT";
  if (error.code.category() == codec::codec_category()) return "IMAGE_INVALID";
  return "IO_ERROR";
}

codec::RecordPtr record_from_bytes(const std::vector<std::byte>& bytes) {
  auto header = codec::decode_record_header(bytes);
  if (!header || bytes.size() != codec::record_header_bytes + header->payload_bytes) return nullptr;
  auto record = std::make_shared<codec::Record>();
  record->header = *header;
  record->bytes = bytes;
  return record;
}

ImageState image_state_of(const LedgerRecord& record) {
  if (codec::raw(record.committed) == 0) return {};
  return ImageState{record.committed, record.image, record_from_bytes(record.end_record),
                    record_from_bytes(record.layout_record)};
}

}  // namespace deltarelay::relay
