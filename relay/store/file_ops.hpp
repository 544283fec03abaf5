// The seam between the store and the file system: the few calls that durability rests on.
//
// The virtual layer has the shape of the system calls (a count, or -errno), so that a fake can be short, full or dead at
// any step; File and the free functions above it loop over short counts and name path and offset in their errors.
// Thread-safe as the system calls are. The real one is system_files(). Mapped files do not go through here (image.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "codec/types.hpp"
#include "relay/store/store_error.hpp"

namespace deltarelay::relay {

using codec::Bytes;
using codec::MutableBytes;

/// One read or write moves at most this many bytes on Linux; more is silently cut.
inline constexpr std::size_t io_bytes_max = 0x7ffff000;

class FileOps {
 public:
  virtual ~FileOps() = default;
  virtual int open(const std::filesystem::path& path, int flags, mode_t mode) = 0;
  virtual int close(int fd) = 0;
  virtual ssize_t pread(int fd, void* data, std::size_t bytes, std::uint64_t offset) = 0;
  virtual ssize_t pwrite(int fd, const void* data, std::size_t bytes, std::uint64_t offset) = 0;
  virtual int fsync(int fd) = 0;
  virtual int ftruncate(int fd, std::uint64_t bytes) = 0;
  virtual int fallocate(int fd, std::uint64_t bytes) = 0;
  virtual std::int64_t size(int fd) = 0;
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual int unlink(const std::filesystem::path& path) = 0;
  virtual int make_directory(const std::filesystem::path& path) = 0;  ///< with parents; 0 when it is there
  virtual int sync_directory(const std::filesystem::path& path) = 0;
  virtual int list(const std::filesystem::path& path, std::vector<std::string>& names) = 0;
};

/// The operating system. Lives as long as the process.
[[nodiscard]] FileOps& system_files() noexcept;

/// An open file; closes itself. Movable. pread and pwrite are thread-safe.
class File {
 public:
  File() = default;
  [[nodiscard]] static StoreResult<File> open(FileOps& ops, std::filesystem::path path, int flags, mode_t mode = 0640);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  /// Fills `out` or fails with unexpected_end.
  [[nodiscard]] StoreResult<void> read_at(std::uint64_t offset, MutableBytes out) const;
  /// Writes all of `data`. After an error any part of it may be in the file.
  [[nodiscard]] StoreResult<void> write_at(std::uint64_t offset, Bytes data);
  [[nodiscard]] StoreResult<void> sync();
  [[nodiscard]] StoreResult<void> truncate(std::uint64_t bytes);
  [[nodiscard]] StoreResult<void> reserve(std::uint64_t bytes);
  [[nodiscard]] StoreResult<std::uint64_t> size() const;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

 private:
  void close() noexcept;
  FileOps* ops_ = nullptr;
  int fd_ = -1;
  std::filesystem::path path_;
};

[[nodiscard]] StoreResult<void> make_directory(FileOps& ops, const std::filesystem::path& path);
[[nodiscard]] StoreResult<void> sync_directory(FileOps& ops, const std::filesystem::path& path);
[[nodiscard]] StoreResult<void> remove_file(FileOps& ops, const std::filesystem::path& path);  ///< absent is success
[[nodiscard]] StoreResult<std::vector<std::string>> list_directory(FileOps& ops, const std::filesystem::path& path);
/// The whole file. `bytes_max` bounds what is allocated.
[[nodiscard]] StoreResult<std::vector<std::byte>> read_file(FileOps& ops, const std::filesystem::path& path, std::uint64_t bytes_max);
/// Old content or new content, never a mixture, through a power cut: temporary file, fsync, rename, fsync of the directory.
[[nodiscard]] StoreResult<void> replace_file(FileOps& ops, const std::filesystem::path& path, Bytes content, mode_t mode = 0640);

}  // namespace deltarelay::relay
