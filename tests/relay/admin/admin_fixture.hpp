// A running AdminServer in a directory of its own, and a client that can send any bytes.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "relay/admin/admin_server.hpp"

namespace deltarelay::relay::admin::testing {

using namespace std::chrono_literals;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "deltarelay-admin-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Two threads, so that what must not depend on one is exercised.
class Threads {
 public:
  Threads() {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { context_.run(); });
  }
  ~Threads() { join(); }
  void join() {
    work_.reset();
    for (auto& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  boost::asio::io_context& context() { return context_; }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  std::vector<std::thread> threads_;
};

inline void stop_and_wait(AdminServer& server) {
  auto stopped = std::make_shared<std::promise<void>>();
  server.stop([stopped] { stopped->set_value(); });
  if (stopped->get_future().wait_for(30s) != std::future_status::ready) std::abort();
}

class RunningServer {
 public:
  TemporaryDirectory directory;
  AdminOptions options;

  RunningServer() { options.path = directory / "admin.sock"; }
  ~RunningServer() {
    if (server_) stop_and_wait(*server_);
    server_.reset();
    threads_.join();
  }
  /// Before start(): changes of `options` count until the first call.
  AdminServer& server() {
    if (!server_) server_.emplace(threads_.context().get_executor(), options);
    return *server_;
  }
  void start() {
    const auto started = server().start();
    if (!started) throw std::runtime_error(started.error().text());
  }
  void stop() { stop_and_wait(server()); }
  [[nodiscard]] const std::filesystem::path& path() const { return options.path; }

 private:
  Threads threads_;
  std::optional<AdminServer> server_;
};

/// Blocking, with a limit of its own on every call, so that a failing test ends.
class RawClient {
 public:
  explicit RawClient(const std::filesystem::path& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    timeval limit{};
    limit.tv_sec = 20;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("connect failed");
    }
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { ::close(fd_); }

  /// False when the server no longer reads.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void end_of_sending() { ::shutdown(fd_, SHUT_WR); }
  /// Everything until the server closes.
  std::string read_all() {
    while (read_some()) {
    }
    return std::exchange(received_, {});
  }
  /// Everything until `ending` has come.
  std::string read_until(std::string_view ending) {
    while (received_.find(ending) == std::string::npos) {
      if (!read_some()) throw std::runtime_error("the server closed; received: " + received_);
    }
    return std::exchange(received_, {});
  }

 private:
  bool read_some() {
    char bytes[4096];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      throw std::runtime_error("the server said nothing for 20 s");
    if (got <= 0) return false;
    received_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  int fd_;
  std::string received_;
};

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace deltarelay::relay::admin::testing
