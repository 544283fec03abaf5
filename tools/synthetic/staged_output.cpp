#include "tools/synthetic/staged_output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace deltarelay::synthetic {
namespace {

namespace fs = std::filesystem;
using codec::Checked;
using codec::errc;
using codec::Failure;

/// Without a slash at the end, so that siblings can be named.
fs::path normal(const fs::path& path) {
  fs::path plain = fs::absolute(path).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

Checked<void> check_free(const fs::path& path) {
  std::error_code ec;
  const fs::file_status status = fs::symlink_status(path, ec);
  if (status.type() == fs::file_type::not_found) return {};
  const auto taken = make_error_code(boost::system::errc::file_exists);
  if (status.type() != fs::file_type::directory) return Failure{taken, path.string(), "it is not a directory"};
  const bool empty = fs::is_empty(path, ec);
  if (ec) return Failure{errc::io_error, path.string(), ec.message()};
  if (!empty) return Failure{taken, path.string(), "it is not empty"};
  return {};
}

Failure refused(const fs::path& path, const std::error_code& ec) {
  return {errc::io_error, path.string(), ec.message()};
}

}  // namespace

fs::path masters_path(const fs::path& directory) {
  return normal(directory).concat(".masters");
}

StagedOutput::StagedOutput(fs::path target, fs::path staging, bool with_masters)
    : target_(std::move(target)), staging_(std::move(staging)), with_masters_(with_masters) {}
StagedOutput::StagedOutput(StagedOutput&& other) noexcept
    : target_(std::move(other.target_)),
      staging_(std::exchange(other.staging_, fs::path{})),
      with_masters_(other.with_masters_) {}
StagedOutput::~StagedOutput() {
  std::error_code ignored;
  if (!staging_.empty()) fs::remove_all(staging_, ignored);
}

Checked<StagedOutput> StagedOutput::create(const fs::path& target, bool with_masters) {
  const fs::path plain = normal(target);
  if (auto free = check_free(plain); !free) return free.error();
  // Masters that an earlier checkpoint of this name left would be taken for the new one's, so they must not stay.
  if (auto free = check_free(masters_path(plain)); !free) return free.error();
  std::string pattern = (plain.parent_path() / fmt::format(".{}.partial-XXXXXX", plain.filename().string())).string();
  if (::mkdtemp(pattern.data()) == nullptr) return refused(plain.parent_path(), {errno, std::generic_category()});
  StagedOutput output(plain, pattern, with_masters);
  std::error_code ec;
  fs::create_directory(output.checkpoint(), ec);
  if (!ec && with_masters) fs::create_directory(output.masters(), ec);
  if (ec) return refused(pattern, ec);
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
