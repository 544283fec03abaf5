// See socket_trouble.hpp.
#include "tools/relayctl/socket_trouble.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>

#include <boost/asio/error.hpp>

namespace deltarelay::relayctl {
namespace {

constexpr const char* another_path = "--socket PATH, as admin.socket in relayd.yaml has it";

std::string group_name(gid_t group) {
  const struct group* entry = ::getgrgid(group);
  return entry == nullptr ? std::to_string(group) : entry->gr_name;
}

SocketTrouble missing(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto directory = path.parent_path();
  if (!directory.empty() && !std::filesystem::exists(directory, ignored))
    return {fmt::format("no directory {}, so relayd has not run here since the host was started", directory.string()),
            fmt::format("start relayd, or {}", another_path)};
  return {"no such file, so relayd does not run or listens elsewhere",
          fmt::format("start relayd, or {}", another_path)};
}

SocketTrouble refused(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) return {"this file is no socket", another_path};
  return {"nobody listens on this socket: its relayd has ended",
          "start relayd again; the end of its log says why it ended"};
}

SocketTrouble denied(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    return {"permission denied: a directory on the way may not be entered", "sudo, or the account that relayd runs as"};
  const std::string group = group_name(found.st_gid);
  if ((found.st_mode & S_IWGRP) == 0)
    return {"permission denied: only its owner may use this socket", "sudo, or admin.mode: 0660 in relayd.yaml"};
  return {fmt::format("permission denied: only its owner and the group {} may use this socket", group),
          fmt::format("sudo, or as a member of the group {}", group)};
}

}  // namespace

SocketTrouble socket_trouble(const boost::system::error_code& failed, const std::filesystem::path& path) {
  namespace errc = boost::system::errc;
  if (failed == boost::asio::error::try_again)
    return {"too many callers are waiting to be let in", "again in a moment"};
  if (failed == errc::no_such_file_or_directory) return missing(path);
  if (failed == errc::not_a_directory) return {"a part of the path is no directory", another_path};
  if (failed == errc::connection_refused) return refused(path);
  if (failed == errc::permission_denied) return denied(path);
  return {failed.message(), another_path};
}

}  // namespace deltarelay::relayctl
