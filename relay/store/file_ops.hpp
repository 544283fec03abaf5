// File calls that never move fewer bytes than asked without saying so, and a seam for tests that lose unsynced data.
//
// Log and ledger write through a FileOps of their own, the image through the real one. One call moves at most 0x7ffff000 bytes in the
// kernel, so every transfer loops. Thread-safe: the real implementation has no state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/types.hpp"
#include "relay/store/store_error.hpp"

namespace deltarelay::relay {

/// An open descriptor and the path it was opened by. Closed by the destructor; movable.
class File {
 public:
  File(int descriptor, std::filesystem::path path) noexcept : descriptor_(descriptor), path_(std::move(path)) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  File& operator=(File&& other) noexcept;
  ~File();
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  int descriptor_ = -1;
  std::filesystem::path path_;
};

enum class OpenMode { read, read_write, create };  ///< create: read and write, emptied if it exists

class FileOps {
 public:
  virtual ~FileOps() = default;
  /// Never follows a symbolic link in the last component.
  [[nodiscard]] virtual StoreResult<File> open(const std::filesystem::path& path, OpenMode mode);
  [[nodiscard]] virtual StoreResult<void> write_at(const File& file, std::uint64_t offset, codec::Bytes data);
  /// Bytes read: fewer than asked only at the end of the file.
  [[nodiscard]] virtual StoreResult<std::size_t> read_at(const File& file, std::uint64_t offset, codec::MutableBytes out);
  [[nodiscard]] virtual StoreResult<std::uint64_t> size(const File& file);
  [[nodiscard]] virtual StoreResult<void> truncate(const File& file, std::uint64_t bytes);
  [[nodiscard]] virtual StoreResult<void> sync(const File& file);
  [[nodiscard]] virtual StoreResult<void> sync_directory(const std::filesystem::path& directory);
  [[nodiscard]] virtual StoreResult<void> rename(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Removing what is not there is success.
  [[nodiscard]] virtual StoreResult<void> remove(const std::filesystem::path& path);
  /// Names in a directory, sorted.
  [[nodiscard]] virtual StoreResult<std::vector<std::string>> list(const std::filesystem::path& directory);

  [[nodiscard]] static FileOps& real() noexcept;
};

/// Replaces a file as a whole: after a crash it has the old content or the new, never a mixture. The new content is durable
/// when this returns success. `mode`: permissions of the new file; by default those of open().
[[nodiscard]] StoreResult<void> replace_file(FileOps& ops, const std::filesystem::path& path, codec::Bytes content,
                                             std::optional<unsigned> mode = std::nullopt);

/// Permissions for a file that engines read and we replace: those it had, or 0644, since engines run as other users.
[[nodiscard]] unsigned mode_of_published(const std::filesystem::path& path);

/// The whole file; a size past `bytes_max` is the error EFBIG.
[[nodiscard]] StoreResult<std::vector<std::byte>> read_file(FileOps& ops, const std::filesystem::path& path,
                                                            std::uint64_t bytes_max);

}  // namespace deltarelay::relay
