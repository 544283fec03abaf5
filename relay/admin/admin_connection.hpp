// One client of the admin socket: reads requests, has them answered one after the other, and ends at the first thing
// that is not HTTP or takes too long.
//
// Layer: relay/admin, internal to the server. Lives on one strand, that of its socket; run() is a task of the server's
// group.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

#include "relay/admin/admin_reply.hpp"
#include "relay/admin/admin_routes.hpp"

namespace deltarelay::relay::admin {

class AdminConnection {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  /// `options` and `routes` outlive it.
  AdminConnection(Socket socket, const AdminOptions& options, const Routes& routes);

  [[nodiscard]] boost::asio::awaitable<void> run();
  /// Says 503 and ends: one connection too many.
  [[nodiscard]] boost::asio::awaitable<void> turn_away();

 private:
  enum class After { keep, close };

  boost::asio::awaitable<bool> bytes_arrived();
  boost::asio::awaitable<After> serve_one();
  boost::asio::awaitable<Answer> answer_to(Request request);
  boost::asio::awaitable<Answer> ask_handler(const Route& route, AdminRequest request);
  boost::asio::awaitable<bool> write(Answer answer, bool keep_alive);
  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<bool> drain();
  void report(const std::string& text) const;

  Socket socket_;
  const AdminOptions& options_;
  const Routes& routes_;
  boost::beast::flat_buffer buffer_;
};

}  // namespace deltarelay::relay::admin
