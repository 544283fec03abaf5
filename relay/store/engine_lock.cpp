#include "relay/store/engine_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>

namespace deltarelay::relay {
namespace {

constexpr const char* engine_lock_name = "deltarelay.lock";

std::string command_of(const std::string& pid) {
  std::string name;
  std::ifstream in("/proc/" + pid + "/comm");
  std::getline(in, name);
  for (char& c : name)  // a process names itself
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  return name;
}

}  // namespace

StoreResult<std::optional<File>> hold_engines(const std::filesystem::path& image_dir) {
  const auto path = image_dir / engine_lock_name;
  // Readable by all, for engines run as other users and a shared flock needs no more than that.
  File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644), path);
  if (file.descriptor() < 0) return system_error(errno, "lock", path.string());
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<File>();
    return system_error(errno, "lock", path.string());
  }
  return std::optional<File>(std::move(file));
}

std::string engines_reading(const std::filesystem::path& image_dir) {
  struct stat status {};
  if (::stat((image_dir / engine_lock_name).c_str(), &status) != 0) return {};
  const std::string file = fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  // "1: FLOCK  ADVISORY  READ 4711 fe:00:1234 0 EOF"; a line with "->" is one that waits.
  std::set<std::string> pids;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, pid, where;
    words >> number >> kind >> mode >> access >> pid >> where;
    if (kind == "FLOCK" && where == file && pid.find_first_not_of("0123456789") == std::string::npos) pids.insert(pid);
  }
  std::string out;
  for (const std::string& pid : pids)
    out += fmt::format("{}pid {} ({})", out.empty() ? "" : ", ", pid, command_of(pid));
  return out;
}

}  // namespace deltarelay::relay
