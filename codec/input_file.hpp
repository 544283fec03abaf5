// A regular file opened for reading, with the identity that tells later whether it is still the same file.
//
// Layer: codec. Not thread-safe except read_at(). Every refusal names the path.
#pragma once

#include <filesystem>

#include "codec/checkpoint.hpp"
#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

class InputFile {
 public:
  /// Follows links; refuses what is not a regular file, without blocking on a pipe. `absent` is the code for a missing
  /// file.
  [[nodiscard]] static Checked<InputFile> open(const std::filesystem::path& path, errc absent = errc::io_error);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  /// As it was when opened.
  [[nodiscard]] const FileIdentity& identity() const noexcept { return identity_; }
  /// Fills `out` from `offset`; fewer bytes there is file_changed, since the size is known from opening.
  [[nodiscard]] Checked<void> read_at(std::uint64_t offset, MutableBytes out) const;
  /// Fails with file_changed when the open file has another size or time than when it was opened.
  [[nodiscard]] Checked<void> check_unchanged() const;

 private:
  InputFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::filesystem::path path_;
  int fd_ = -1;
  FileIdentity identity_;
};

/// Fails with file_changed when `path` now leads to another file, or to the same one with another size or time.
[[nodiscard]] Checked<void> check_same_file(const std::filesystem::path& path, const FileIdentity& expected);

}  // namespace deltarelay::codec
