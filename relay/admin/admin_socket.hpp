// The socket file: made with the right mode, never in place of something that is alive or no socket, and removed only
// by whoever made it.
//
// Layer: relay/admin, internal to the server. Start and stop call it on one thread; it blocks for a few system calls
// only.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "codec/errc.hpp"

namespace deltarelay::relay::admin {

class AdminSocket {
 public:
  /// Binds and listens. Errors: a live daemon, a file that is no socket, a path too long, what the system refuses.
  [[nodiscard]] static codec::Checked<AdminSocket> open(boost::asio::any_io_executor executor,
                                                        const std::filesystem::path& path, std::uint32_t mode);
  AdminSocket(AdminSocket&& other) noexcept;
  AdminSocket& operator=(AdminSocket&&) = delete;
  ~AdminSocket();

  [[nodiscard]] boost::asio::local::stream_protocol::acceptor& acceptor() noexcept { return acceptor_; }
  /// Closes, and removes the file unless it is another one by now. Idempotent.
  void close();

 private:
  AdminSocket(boost::asio::local::stream_protocol::acceptor acceptor, std::filesystem::path path, int lock);

  boost::asio::local::stream_protocol::acceptor acceptor_;
  std::filesystem::path path_;
  int lock_ = -1;
  dev_t device_{};
  ino_t inode_{};
};

}  // namespace deltarelay::relay::admin
