#include "relay/admin/admin_connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http.hpp>
#include <exception>
#include <memory>

#include "relay/net/deadline.hpp"

namespace deltarelay::relay::admin {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::io;
using net::with_deadline;

constexpr std::size_t drain_bytes_max = 4u << 20;
constexpr std::chrono::seconds linger_within{1};
constexpr int exit_usage = 2, exit_unreachable = 4, exit_timed_out = 5;
constexpr const char* try_same_version = "a relayctl of the daemon's version";

long long milliseconds_of(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

/// The answer to what was no request; nullopt when there is nobody to tell.
std::optional<Answer> answer_to_garbage(error_code error, const AdminOptions& options) {
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return error_answer(431, "request refused",
                        fmt::format("its header is longer than {} bytes", options.header_bytes_max),
                        "fewer or shorter header fields", exit_usage);
  }
  if (error == http::error::body_limit) {
    return error_answer(413, "request refused", fmt::format("its body is longer than {} bytes", options.body_bytes_max),
                        "a smaller body", exit_usage);
  }
  if (error.category() != make_error_code(http::error::bad_method).category()) return std::nullopt;  // the socket's
  return error_answer(400, "request refused", "it is not HTTP/1.1: " + error.message(),
                      "relayctl, or curl --unix-socket", exit_usage);
}

/// Closes the slot however the wait for an answer ends.
struct SlotCloser {
  std::shared_ptr<AdminReply::Slot> slot;
  explicit SlotCloser(std::shared_ptr<AdminReply::Slot> of) : slot(std::move(of)) {}
  SlotCloser(const SlotCloser&) = delete;
  SlotCloser& operator=(const SlotCloser&) = delete;
  ~SlotCloser() { slot->close(); }
};

std::optional<std::uint32_t> peer_uid(AdminConnection::Socket& socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return std::nullopt;
  return credentials.uid;
}

}  // namespace

AdminConnection::AdminConnection(Socket socket, const AdminOptions& options, const Routes& routes)
    : socket_(std::move(socket)), options_(options), routes_(routes) {}

asio::awaitable<void> AdminConnection::run() {
  for (;;) {
    if (buffer_.size() == 0 && !co_await bytes_arrived()) co_return;
    const After after = co_await serve_one();
    if (after == After::close) break;
  }
  co_await linger();
}

asio::awaitable<void> AdminConnection::turn_away() {
  Answer answer = error_answer(503, "relayd has too many admin connections",
                               fmt::format("{} are open, its limit", options_.connections_max),
                               "again in a moment; end watchers that nobody reads", exit_unreachable);
  const bool written = co_await write(std::move(answer), false);
  if (written) co_await linger();
}

asio::awaitable<bool> AdminConnection::bytes_arrived() {
  auto wait = socket_.async_wait(asio::socket_base::wait_read, io);
  const auto arrived = co_await with_deadline(std::move(wait), options_.idle_within);
  co_return arrived && !std::get<0>(*arrived);
}

asio::awaitable<AdminConnection::After> AdminConnection::serve_one() {
  http::request_parser<http::string_body> parser;
  parser.header_limit(options_.header_bytes_max);
  parser.body_limit(options_.body_bytes_max);
  auto read = http::async_read(socket_, buffer_, parser, io);
  const auto got = co_await with_deadline(std::move(read), options_.request_within);
  if (!got) {
    Answer late =
        error_answer(408, "request refused",
                     fmt::format("it was not complete within {} ms", milliseconds_of(options_.request_within)), "again",
                     exit_timed_out);
    co_await write(std::move(late), false);
    co_return After::close;
  }
  if (const error_code error = std::get<0>(*got)) {
    auto answer = answer_to_garbage(error, options_);
    if (answer) co_await write(std::move(*answer), false);
    co_return After::close;
  }
  const bool keep_alive = parser.keep_alive();
  Answer answer = co_await answer_to(parser.release());
  const bool written = co_await write(std::move(answer), keep_alive);
  co_return written&& keep_alive ? After::keep : After::close;
}

asio::awaitable<Answer> AdminConnection::answer_to(Request request) {
  AdminRequest out;
  out.method = std::string(request.method_string());
  auto target = parse_target({request.target().data(), request.target().size()});
  if (!target) {
    co_return error_answer(400, "request refused", "its target is no path: " + std::string(request.target()),
                           "relayctl, or a path of docs/admin-api.md", exit_usage);
  }
  auto found = routes_.find(out.method, *target);
  if (found.route == nullptr && found.allowed.empty()) {
    co_return error_answer(404, "request refused", "relayd has nothing at " + target->path, try_same_version,
                           exit_usage);
  }
  if (found.route == nullptr) {
    Answer refused =
        error_answer(405, "request refused", target->path + " takes " + found.allowed + ", not " + out.method,
                     try_same_version, exit_usage);
    refused.allow = found.allowed;
    co_return refused;
  }
  out.path = std::move(target->path);
  out.query = std::move(target->query);
  out.captures = std::move(found.captures);
  out.body = std::move(request.body());
  out.peer_uid = peer_uid(socket_);
  auto asked = ask_handler(*found.route, std::move(out));
  co_return co_await std::move(asked);
}

asio::awaitable<Answer> AdminConnection::ask_handler(const Route& route, AdminRequest request) {
  const asio::any_io_executor strand = socket_.get_executor();
  const auto timer = std::make_shared<asio::steady_timer>(strand, route.answer_within);
  const auto slot =
      std::make_shared<AdminReply::Slot>([strand, timer] { asio::post(strand, [timer] { timer->cancel(); }); });
  const SlotCloser closer(slot);
  const std::string asked = request.method + ' ' + request.path;
  try {
    route.handler(std::move(request), AdminReply(slot));
  } catch (const std::exception& escaped) {
    report("the handler of " + asked + " failed: " + escaped.what());  // the reply it dropped has become 500
  }
  for (;;) {
    if (auto answer = slot->take()) co_return std::move(*answer);
    const auto [cancelled] = co_await timer->async_wait(io);
    if (cancelled) continue;  // answered; or stopped, then the next wait throws
    if (auto answer = slot->take()) co_return std::move(*answer);
    co_return error_answer(504, "relayd did not answer " + asked,
                           fmt::format("it took longer than {} ms", milliseconds_of(route.answer_within)),
                           "again; when it lasts, the daemon's log", exit_timed_out);
  }
}

asio::awaitable<bool> AdminConnection::write(Answer answer, bool keep_alive) {
  http::response<http::string_body> response;
  response.version(11);
  response.result(answer.status);
  response.keep_alive(keep_alive);
  response.set(http::field::content_type, "application/json");
  response.set(http::field::cache_control, "no-store");
  if (!answer.allow.empty()) response.set(http::field::allow, answer.allow);
  response.body() = std::move(answer.body);
  response.prepare_payload();
  http::response_serializer<http::string_body> serializer(response);
  while (!serializer.is_done()) {
    auto step = http::async_write_some(socket_, serializer, io);
    const auto wrote = co_await with_deadline(std::move(step), options_.write_within);
    if (!wrote || std::get<0>(*wrote)) co_return false;
  }
  co_return true;
}

// A close with unread bytes would make the kernel reset the connection, and the client might lose the answer.
asio::awaitable<void> AdminConnection::linger() {
  error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  auto reading = drain();
  co_await with_deadline(std::move(reading), linger_within);
  socket_.close(ignored);
}

asio::awaitable<bool> AdminConnection::drain() {
  std::array<char, 4096> unread;
  for (std::size_t drained = 0; drained < drain_bytes_max;) {
    const auto [error, bytes] = co_await socket_.async_read_some(asio::buffer(unread), io);
    if (error) co_return true;
    drained += bytes;
  }
  co_return false;
}

void AdminConnection::report(const std::string& text) const {
  if (options_.report) options_.report(text);
}

}  // namespace deltarelay::relay::admin
