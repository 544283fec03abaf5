// Why the daemon's socket could not be connected to, as an operator has to know it to go on.
//
// One errno has several causes here: "connection refused" is a daemon that has ended, or a path that is no socket at
// all; "permission denied" is a group that one is not in, or a directory that one may not enter. So the path is looked
// at.
#pragma once

#include <boost/system/error_code.hpp>
#include <filesystem>
#include <string>

namespace deltarelay::relayctl {

struct SocketTrouble {
  std::string why, try_next;
};

[[nodiscard]] SocketTrouble socket_trouble(const boost::system::error_code& failed, const std::filesystem::path& path);

}  // namespace deltarelay::relayctl
