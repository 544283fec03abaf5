#include "relay/store/file_ops.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace deltarelay::relay {
namespace {

constexpr std::size_t transfer_bytes_max = 0x7ffff000;

StoreError failed(const char* what, const std::filesystem::path& path, std::uint64_t offset = 0) {
  return system_error(errno, what, path.string(), offset);
}

}  // namespace

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

StoreResult<File> FileOps::open(const std::filesystem::path& path, OpenMode mode) {
  int flags = O_CLOEXEC | O_NOFOLLOW;
  flags |= mode == OpenMode::read ? O_RDONLY : O_RDWR;
  if (mode == OpenMode::create) flags |= O_CREAT | O_TRUNC;
  const int descriptor = ::open(path.c_str(), flags, 0640);
  if (descriptor < 0) return failed("open", path);
  return File(descriptor, path);
}

StoreResult<void> FileOps::write_at(const File& file, std::uint64_t offset, codec::Bytes data) {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(file.descriptor(), data.data(), std::min(data.size(), transfer_bytes_max),
                               static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write", file.path(), offset);
    if (n == 0) return system_error(EIO, "write", file.path().string(), offset);
    data = data.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

StoreResult<std::size_t> FileOps::read_at(const File& file, std::uint64_t offset, codec::MutableBytes out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(file.descriptor(), out.data() + done, std::min(out.size() - done, transfer_bytes_max),
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read", file.path(), offset + done);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

StoreResult<std::uint64_t> FileOps::size(const File& file) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return failed("stat", file.path());
  return static_cast<std::uint64_t>(status.st_size);
}

StoreResult<void> FileOps::truncate(const File& file, std::uint64_t bytes) {
  if (::ftruncate(file.descriptor(), static_cast<off_t>(bytes)) != 0) return failed("truncate", file.path(), bytes);
  return {};
}

StoreResult<void> FileOps::sync(const File& file) {
  if (::fdatasync(file.descriptor()) != 0) return failed("sync", file.path());
  return {};
}

StoreResult<void> FileOps::sync_directory(const std::filesystem::path& directory) {
  const File file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), directory);
  if (file.descriptor() < 0) return failed("open", directory);
  if (::fsync(file.descriptor()) != 0) return failed("sync", directory);
  return {};
}

StoreResult<void> FileOps::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename to", to);
  return {};
}

StoreResult<void> FileOps::remove(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("remove", path);
  return {};
}

StoreResult<std::vector<std::string>> FileOps::list(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) return system_error(error.value(), "list", directory.string());
  std::sort(names.begin(), names.end());
  return names;
}

FileOps& FileOps::real() noexcept {
  static FileOps ops;
  return ops;
}

StoreResult<void> replace_file(FileOps& ops, const std::filesystem::path& path, codec::Bytes content,
                               std::optional<unsigned> mode) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  {
    auto file = ops.open(temporary, OpenMode::create);
    if (!file) return file.error();
    if (mode && ::fchmod(file->descriptor(), static_cast<mode_t>(*mode)) != 0)
      return system_error(errno, "set permissions of", temporary.string());
    if (auto done = ops.write_at(*file, 0, content); !done) return done;
    if (auto done = ops.sync(*file); !done) return done;
  }
  if (auto done = ops.rename(temporary, path); !done) return done;
  return ops.sync_directory(path.parent_path().empty() ? "." : path.parent_path());
}

unsigned mode_of_published(const std::filesystem::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? status.st_mode & 0777 : 0644;
}

StoreResult<std::vector<std::byte>> read_file(FileOps& ops, const std::filesystem::path& path, std::uint64_t bytes_max) {
  auto file = ops.open(path, OpenMode::read);
  if (!file) return file.error();
  auto bytes = ops.size(*file);
  if (!bytes) return bytes.error();
  if (*bytes > bytes_max) return system_error(EFBIG, "read", path.string(), *bytes);
  std::vector<std::byte> content(*bytes);
  auto got = ops.read_at(*file, 0, content);
  if (!got) return got.error();
  content.resize(*got);
  return content;
}

}  // namespace deltarelay::relay
