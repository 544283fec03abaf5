#include "codec/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace deltarelay::codec {
namespace {

Failure os_failure(errc code, const std::filesystem::path& path, int error) {
  return {code, path.string(), std::generic_category().message(error)};
}

FileIdentity identity_of(const struct stat& st) {
  constexpr std::int64_t second_ns = 1'000'000'000;
  return {.device = st.st_dev,
          .inode = st.st_ino,
          .bytes = static_cast<std::uint64_t>(st.st_size),
          .modified_ns = st.st_mtim.tv_sec * second_ns + st.st_mtim.tv_nsec,
          .changed_ns = st.st_ctim.tv_sec * second_ns + st.st_ctim.tv_nsec};
}

Failure changed(const std::filesystem::path& path) {
  return {errc::file_changed, path.string(), {}};
}

}  // namespace

Checked<InputFile> InputFile::open(const std::filesystem::path& path, errc absent) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    return os_failure(error == ENOENT ? absent : errc::io_error, path, error);
  }
  InputFile file{path, fd};
  struct stat st {};
  if (::fstat(fd, &st) != 0) return os_failure(errc::io_error, path, errno);
  if (!S_ISREG(st.st_mode)) return Failure{errc::not_a_regular_file, path.string(), {}};
  file.identity_ = identity_of(st);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), identity_(other.identity_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(identity_, other.identity_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Checked<void> InputFile::read_at(std::uint64_t offset, MutableBytes out) const {
  // One call moves at most 0x7ffff000 bytes, whatever is asked for.
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return os_failure(errc::io_error, path_, errno);
    }
    if (got == 0) return changed(path_);
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Checked<void> InputFile::check_unchanged() const {
  struct stat st {};
  if (::fstat(fd_, &st) != 0) return os_failure(errc::io_error, path_, errno);
  if (identity_of(st) != identity_) return changed(path_);
  return {};
}

Checked<void> check_same_file(const std::filesystem::path& path, const FileIdentity& expected) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return os_failure(errc::file_changed, path, errno);
  if (identity_of(st) != expected) return changed(path);
  return {};
}

}  // namespace deltarelay::codec
