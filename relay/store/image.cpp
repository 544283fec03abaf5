#include "relay/store/image.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "relay/store/engine_lock.hpp"

namespace deltarelay::relay {
namespace {

using codec::raw;
constexpr const char* lock_name = ".deltarelay.lock";
constexpr const char* unfinished_name = ".deltarelay.creating";  // image_create.cpp

StoreError refused(store_errc code, const char* what, const std::filesystem::path& path) {
  return {make_error_code(code), what, path.string(), 0};
}

}  // namespace

StoreResult<File> Image::lock_directory(const std::filesystem::path& directory) {
  const auto path = directory / lock_name;
  File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640), path);
  if (file.descriptor() < 0) {
    if (errno == EACCES || errno == EROFS) return refused(store_errc::read_only, "lock", directory);
    return system_error(errno, "lock", path.string());
  }
  // flock, not a PID file: the kernel lets go of it when the holder dies, however it dies.
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return refused(store_errc::already_locked, "lock", directory);
    return system_error(errno, "lock", path.string());
  }
  return file;
}

StoreResult<std::unique_ptr<Image>> Image::open(const std::filesystem::path& directory, std::uint32_t block_bytes) {
  auto lock = lock_directory(directory);
  if (!lock) return lock.error();
  return open(directory, block_bytes, std::move(*lock));
}

StoreResult<std::unique_ptr<Image>> Image::open(const std::filesystem::path& directory, std::uint32_t block_bytes,
                                                File lock) {
  // create() ends by removing this file: with it, the shards may be anything.
  if (std::error_code none; std::filesystem::exists(directory / unfinished_name, none))
    return refused(store_errc::corrupt, "open unfinished image", directory);
  auto checkpoint = codec::Checkpoint::open(directory, block_bytes);
  if (!checkpoint) {
    const auto& failure = checkpoint.error();
    return StoreError{failure.code, "open checkpoint" + (failure.why.empty() ? "" : " (" + failure.why + ")"),
                      failure.where.empty() ? directory.string() : failure.where, 0};
  }
  std::unique_ptr<Image> image(new Image(std::move(lock), std::move(*checkpoint)));
  for (const auto& shard : image->checkpoint_.shards())
    if (auto done = image->open_shard(shard); !done) return done.error();
  return image;
}

StoreResult<void> Image::open_shard(const codec::ShardFile& shard) {
  const auto path = checkpoint_.directory() / shard.name;
  File file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW), path);
  if (file.descriptor() < 0) {
    if (errno == ELOOP) return refused(store_errc::symbolic_link, "open", path);
    if (errno == EACCES || errno == EROFS || errno == EPERM) return refused(store_errc::read_only, "open", path);
    return system_error(errno, "open", path.string());
  }
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return system_error(errno, "stat", path.string());
  if (status.st_nlink > 1) return refused(store_errc::hard_linked, "open", path);
  if (status.st_dev != shard.identity.device || status.st_ino != shard.identity.inode ||
      static_cast<std::uint64_t>(status.st_size) != shard.identity.bytes)
    return refused(store_errc::replaced, "open", path);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  // Space first: a hole that cannot be filled would fail in the middle of an apply. What has its space is left alone.
  const bool has_holes = static_cast<std::uint64_t>(status.st_blocks) * 512 < bytes;
  if (const int error = has_holes ? ::posix_fallocate(file.descriptor(), 0, status.st_size) : 0; error != 0)
    return system_error(error, "reserve space for", path.string());
  shards_.push_back({std::move(file), bytes});
  return {};
}

StoreResult<void> Image::read_block(codec::BlockId id, codec::MutableBytes out) const {
  const auto& place = checkpoint_.places().at(raw(id.tensor));
  const File& file = shards_.at(place.shard).file;
  const std::uint64_t offset = place.file_offset + layout()->offset_of(id);
  auto read = FileOps::real().read_at(file, offset, out);
  if (!read) return read.error();
  if (*read != out.size())
    return StoreError{make_error_code(store_errc::replaced), "read", file.path().string(), offset};
  return {};
}

StoreResult<void> Image::write_block(codec::BlockId id, codec::Bytes content) const {
  const auto& place = checkpoint_.places().at(raw(id.tensor));
  const File& file = shards_.at(place.shard).file;
  const std::uint64_t offset = place.file_offset + layout()->offset_of(id);
  // A file that somebody cut short would grow again under a write, with a hole where weights were.
  auto bytes = FileOps::real().size(file);
  if (!bytes) return bytes.error();
  if (*bytes < offset + content.size())
    return StoreError{make_error_code(store_errc::replaced), "write", file.path().string(), offset};
  return FileOps::real().write_at(file, offset, content);
}

StoreResult<void> Image::check_identity() const {
  for (const Shard& shard : shards_) {
    struct stat open_now {
    }, named{};
    if (::fstat(shard.file.descriptor(), &open_now) != 0 || ::lstat(shard.file.path().c_str(), &named) != 0 ||
        open_now.st_dev != named.st_dev || open_now.st_ino != named.st_ino ||
        static_cast<std::uint64_t>(open_now.st_size) != shard.bytes)
      return refused(store_errc::replaced, "check", shard.file.path());
    if (named.st_nlink > 1) return refused(store_errc::hard_linked, "check", shard.file.path());
  }
  return {};
}

StoreResult<void> Image::sync() const {
  for (const Shard& shard : shards_) {
    if (auto done = FileOps::real().sync(shard.file); !done) return done;
  }
  return {};
}

StoreResult<void> Image::write_companion(const codec::FilePayload& file) const {
  const auto path = checkpoint_.directory() / file.name;
  if (!codec::is_companion_name(file.name)) return refused(store_errc::corrupt, "write file of refused name", path);
  return replace_file(FileOps::real(), path, file.content, mode_of_published(path));
}

StoreResult<bool> Image::try_hold_engines() {
  if (engine_lock_) return true;
  auto held = hold_engines(checkpoint_.directory());
  if (!held) return held.error();
  engine_lock_ = std::move(*held);
  return engine_lock_.has_value();
}

StoreResult<void> Image::write_marker(const ImageMarker& marker) const {
  return relay::write_marker(checkpoint_.directory(), marker);
}

}  // namespace deltarelay::relay
