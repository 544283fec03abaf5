// The admin API's server: HTTP/1.1 on a Unix socket, with routes whose handlers may answer later and from any thread.
//
// Layer: relay/admin, shell side; knows documents and sockets, nothing of the core. The socket file's mode says who may
// talk to the daemon: there is no other authorisation. Everything a client can make it hold is bounded: connections,
// header, body, and the time for each step of a request.
// Order of calls: route()…, start(), stop(), and the destructor once stop()'s callback has run. Thread-safe after
// start().
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "codec/errc.hpp"
#include "relay/admin/documents.hpp"

namespace deltarelay::relay::admin {

struct AdminOptions {
  std::filesystem::path path;
  std::uint32_t mode = 0660;
  std::size_t connections_max = 64;
  std::uint32_t header_bytes_max = 16u << 10;
  std::uint64_t body_bytes_max = 1u << 20;
  std::chrono::steady_clock::duration idle_within = std::chrono::seconds(60);     ///< between two requests
  std::chrono::steady_clock::duration request_within = std::chrono::seconds(10);  ///< first byte to last byte of one
  std::chrono::steady_clock::duration write_within =
      std::chrono::seconds(10);  ///< without one byte of an answer moving
  /// Gets the text of an exception that escaped a connection or handler, on its thread; may be empty.
  std::function<void(const std::string&)> report;
};

struct AdminRequest {
  std::string method;                           ///< GET or POST
  std::string path;                             ///< decoded, without the query
  std::map<std::string, std::string> captures;  ///< "{name}" of the pattern, decoded
  std::map<std::string, std::string> query;     ///< decoded; of a key given twice, the last
  std::string body;
  std::optional<std::uint32_t> peer_uid;  ///< of the process that connected, as the kernel says; for records of acts
};

/// The right to answer one request, once. Copyable; copies share it. May be used on any thread and outlive the server.
/// When the last copy goes without an answer, the client gets 500. Answers after the first, after the route's deadline
/// or after the client has gone are ignored.
class AdminReply {
 public:
  /// `body` is a JSON document.
  void send(unsigned http_status, std::string body) const;
  /// False once an answer is under way or nobody waits for one any more.
  [[nodiscard]] bool wanted() const;

  struct Slot;
  explicit AdminReply(std::shared_ptr<Slot> slot);

 private:
  struct Ticket;
  std::shared_ptr<Ticket> ticket_;
};

/// Called on a thread of the server's executor; must not block. An exception becomes 500 and is reported.
using AdminHandler = std::function<void(AdminRequest, AdminReply)>;

class AdminServer {
 public:
  /// The executor may be a multi-threaded context: the server makes its own strands.
  AdminServer(boost::asio::any_io_executor executor, AdminOptions options);
  /// REQUIRES that it was never started or that stop()'s callback has run.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// Before start(). `pattern` is a path whose segments may be captures: "/v1/nodes/{name}"; a fixed segment wins over
  /// a capture. A handler that has not answered within `answer_within` loses its reply: the client gets 504.
  void route(std::string_view method, std::string_view pattern, AdminHandler handler,
             std::chrono::steady_clock::duration answer_within = std::chrono::seconds(10));

  /// Binds and listens. A socket file that a dead daemon left is replaced; one that somebody answers on, and a file
  /// that is no socket, are errors and left alone. `PATH.lock` keeps two daemons apart while they look.
  [[nodiscard]] codec::Checked<void> start();
  /// Takes no more connections, ends those that are open, removes the socket file if it is still ours, then calls
  /// `stopped` once, on a thread of the executor (at once when nothing ran). May be called again.
  void stop(std::function<void()> stopped);

  [[nodiscard]] std::size_t connections() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// 200 with a document.
template <class Document>
void answer(const AdminReply& reply, const Document& document) {
  reply.send(200, to_json(document));
}

/// An error with its HTTP status; docs/admin-api.md has the table of statuses and exit codes.
inline void refuse(const AdminReply& reply, unsigned http_status, const ErrorDocument& error) {
  reply.send(http_status, to_json(error));
}

/// Fills `out` from the request's body, or says what is wrong with it:
/// `if (auto wrong = read_body(request, body)) return refuse(reply, 400, *wrong);`
template <class Request>
[[nodiscard]] std::optional<ErrorDocument> read_body(const AdminRequest& request, Request& out) {
  const std::string why = from_json(request.body, out);
  if (why.empty()) return std::nullopt;
  ErrorDocument error;
  error.what = "cannot read the body of " + request.method + ' ' + request.path;
  error.why = why;
  error.try_next = "a relayctl of the daemon's version";
  error.exit_code = 2;
  return error;
}

}  // namespace deltarelay::relay::admin
