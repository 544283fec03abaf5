#include "tools/synthetic/staged_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace deltarelay::synthetic {
namespace {

namespace fs = std::filesystem;
using codec::Checked;
using codec::Failure;

/// Without a slash at the end, so that siblings can be named.
fs::path normal(const fs::path& path) {
  fs::path plain = fs::absolute(path).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

Failure refused(const fs::path& path, const std::error_code& ec) {
  return {codec::error_code(ec.value(), boost::system::generic_category()), path.string(), {}};
}

Checked<void> check_free(const fs::path& path) {
  std::error_code ec;
  const fs::file_status status = fs::symlink_status(path, ec);
  if (status.type() == fs::file_type::not_found) return {};
  if (status.type() == fs::file_type::none) return refused(path, ec);
  const auto taken = make_error_code(boost::system::errc::file_exists);
  if (status.type() != fs::file_type::directory) return Failure{taken, path.string(), "it is not a directory"};
  const bool empty = fs::is_empty(path, ec);
  if (ec) return refused(path, ec);
  if (!empty) return Failure{taken, path.string(), "it is not empty"};
  return {};
}

std::string staging_prefix(const fs::path& target) {
  return fmt::format(".{}.partial-", target.filename().string());
}

constexpr std::string_view staging_suffix = "XXXXXX";

bool is_staging_name(std::string_view name, std::string_view prefix) {
  if (name.size() != prefix.size() + staging_suffix.size() || name.substr(0, prefix.size()) != prefix) return false;
  return std::ranges::all_of(name.substr(prefix.size()), [](unsigned char c) { return std::isalnum(c) != 0; });
}

enum class Lock : std::uint8_t { held, busy, unsupported };

/// The lock ends with the descriptor. File systems of the network may refuse to lock a directory.
Lock lock_directory(int directory) {
  if (::flock(directory, LOCK_EX | LOCK_NB) == 0) return Lock::held;
  return errno == EWOULDBLOCK ? Lock::busy : Lock::unsupported;
}

int open_directory(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/// Best effort: what cannot be removed, perhaps because it is another user's, is in nobody's way.
std::vector<fs::path> clear_abandoned(const fs::path& target) {
  std::vector<fs::path> found, cleared;
  std::error_code ec;
  const std::string prefix = staging_prefix(target);
  for (fs::directory_iterator at(target.parent_path(), ec), end; !ec && at != end; at.increment(ec))
    if (is_staging_name(at->path().filename().string(), prefix)) found.push_back(at->path());
  for (const fs::path& path : found) {
    const int directory = open_directory(path);
    if (directory < 0) continue;
    if (lock_directory(directory) == Lock::held) {
      fs::remove_all(path, ec);
      if (!ec) cleared.push_back(path);
    }
    ::close(directory);
  }
  return cleared;
}

}  // namespace

fs::path masters_path(const fs::path& directory) {
  return normal(directory).concat(".masters");
}

StagedOutput::StagedOutput(fs::path target, bool with_masters)
    : target_(std::move(target)), with_masters_(with_masters) {}
StagedOutput::StagedOutput(StagedOutput&& other) noexcept
    : target_(std::move(other.target_)),
      staging_(std::exchange(other.staging_, fs::path{})),
      cleared_(std::move(other.cleared_)),
      lock_(std::exchange(other.lock_, -1)),
      with_masters_(other.with_masters_) {}
StagedOutput::~StagedOutput() {
  std::error_code ignored;
  if (!staging_.empty()) fs::remove_all(staging_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

Checked<void> StagedOutput::make_staging() {
  const fs::path parent = target_.parent_path();
  // Between making and locking it another process may take it for abandoned; once is chance, often is a fault.
  for (int attempts = 10; attempts > 0; --attempts) {
    std::string pattern = (parent / staging_prefix(target_)).string().append(staging_suffix);
    if (::mkdtemp(pattern.data()) == nullptr) return refused(parent, {errno, std::generic_category()});
    const int directory = open_directory(pattern);
    const Lock lock = directory < 0 ? Lock::busy : lock_directory(directory);
    struct stat now = {};
    if (lock != Lock::busy && ::fstat(directory, &now) == 0 && now.st_nlink > 0) {
      staging_ = pattern;
      lock_ = directory;
      return {};
    }
    if (directory >= 0) ::close(directory);
  }
  return refused(parent, std::make_error_code(std::errc::device_or_resource_busy));
}

Checked<StagedOutput> StagedOutput::create(const fs::path& target, bool with_masters) {
  const fs::path plain = normal(target);
  if (auto free = check_free(plain); !free) return free.error();
  // Masters that an earlier checkpoint of this name left would be taken for the new one's, so they must not stay.
  if (auto free = check_free(masters_path(plain)); !free) return free.error();
  StagedOutput output(plain, with_masters);
  output.cleared_ = clear_abandoned(plain);
  if (auto made = output.make_staging(); !made) return made.error();
  std::error_code ec;
  fs::create_directory(output.checkpoint(), ec);
  if (!ec && with_masters) fs::create_directory(output.masters(), ec);
  if (ec) return refused(output.staging_, ec);
  return output;
}

Checked<void> StagedOutput::commit() {
  std::error_code ec;
  const fs::path beside = masters_path(target_);
  if (with_masters_) {
    fs::rename(masters(), beside, ec);
    if (ec) return refused(beside, ec);
  }
  fs::rename(checkpoint(), target_, ec);
  if (!ec) return {};
  std::error_code ignored;
  if (with_masters_) fs::rename(beside, masters(), ignored);
  return refused(target_, ec);
}

}  // namespace deltarelay::synthetic
