// One request over the admin socket. Asynchronous calls on a private io_context are what gives the synchronous caller a
// deadline for the whole of it.
#include "tools/relayctl/admin_client.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/socket_trouble.hpp"

namespace deltarelay::relayctl {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Socket = asio::local::stream_protocol::socket;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t answer_bytes_max = 256u << 20;  // 5,000 nodes make about 3 MiB
constexpr int exit_code_max = 125;                      // above it a shell means something else

ClientError make_error(ExitCode code, std::string what, std::string why, std::string try_next) {
  ClientError error;
  error.exit_code = code;
  error.what = std::move(what);
  error.why = std::move(why);
  error.try_next = std::move(try_next);
  return error;
}

/// The exchange, one step after the other, each under what is left of the deadline.
class Exchange {
 public:
  Exchange(const std::filesystem::path& path, std::chrono::milliseconds timeout)
      : path_(path), timeout_(timeout), until_(Clock::now() + timeout) {}

  ClientResult run(http::verb verb, const std::string& target, std::string body) {
    if (!connect() || !ask(verb, target, std::move(body)) || !receive()) return std::move(result_);
    const auto& answer = parser_.get();
    if (answer.result() == http::status::ok) {
      result_.body = answer.body();
    } else {
      refused(answer.result_int(), answer.body());
    }
    return std::move(result_);
  }

 private:
  /// Runs the operation that `start` begins; false, and result_ is a time-out, when the deadline passed first.
  template <class Start>
  bool within_deadline(const char* step, error_code& failed, Start start) {
    bool done = false;
    start([&](error_code code) {
      failed = code;
      done = true;
    });
    io_.restart();
    io_.run_until(until_);
    if (done) return true;
    socket_.close(failed);
    io_.restart();
    io_.run();  // the cancelled operation still refers to our locals
    result_.error = make_error(ExitCode::timed_out, fmt::format("no answer from relayd at {}", path_.string()),
                               fmt::format("{} took longer than {} ms", step, timeout_.count()),
                               "a longer --timeout; the end of relayd's log says what it is busy with");
    return false;
  }

  bool connect() {
    if (path_.native().size() >= sizeof(sockaddr_un::sun_path)) {
      unreachable("the path is longer than a socket's name may be", "a shorter path with --socket");
      return false;
    }
    error_code failed;
    const asio::local::stream_protocol::endpoint endpoint(path_.native());
    if (!within_deadline("connecting", failed, [&](auto done) { socket_.async_connect(endpoint, done); })) return false;
    if (!failed) return true;
    SocketTrouble trouble = socket_trouble(failed, path_);
    unreachable(std::move(trouble.why), std::move(trouble.try_next));
    return false;
  }

  bool ask(http::verb verb, const std::string& target, std::string body) {
    http::request<http::string_body> request(verb, target, 11);
    request.set(http::field::host, "relayd");
    request.set(http::field::connection, "close");
    if (verb == http::verb::post) {
      request.set(http::field::content_type, "application/json");
      request.body() = std::move(body);
    }
    request.prepare_payload();
    // A daemon that refuses early answers before it has read everything, so a failed write is no end yet.
    error_code failed;
    return within_deadline("sending the request", failed, [&](auto done) {
      http::async_write(socket_, request, [done](error_code code, std::size_t) mutable { done(code); });
    });
  }

  bool receive() {
    parser_.body_limit(answer_bytes_max);
    error_code failed;
    if (!within_deadline("waiting for the answer", failed, [&](auto done) {
          http::async_read(socket_, buffer_, parser_, [done](error_code code, std::size_t) mutable { done(code); });
        })) {
      return false;
    }
    if (!failed) return true;
    const bool ended = failed == http::error::end_of_stream || failed == http::error::partial_message ||
                       failed == asio::error::connection_reset || failed == asio::error::broken_pipe;
    if (ended) {
      unreachable("it closed the connection before it had answered",
                  "again in a moment: it may be restarting; if not, see the end of its log");
    } else {
      result_.error = make_error(ExitCode::failed, fmt::format("cannot read the answer of {}", path_.string()),
                                 failed.message(), "--socket PATH of a running relayd");
    }
    return false;
  }

  void unreachable(std::string why, std::string try_next) {
    result_.error = make_error(ExitCode::unreachable, fmt::format("cannot reach relayd at {}", path_.string()),
                               std::move(why), std::move(try_next));
  }

  void refused(unsigned status, const std::string& body) {
    relay::admin::ErrorDocument document;
    if (const std::string wrong = relay::admin::from_json(body, document); !wrong.empty()) {
      result_.error = make_error(ExitCode::failed, fmt::format("relayd at {} answered HTTP {}", path_.string(), status),
                                 "without saying why", "--socket PATH of a running relayd");
    } else {
      const bool in_range = document.exit_code > 0 && document.exit_code <= exit_code_max;
      result_.error = make_error(in_range ? ExitCode{document.exit_code} : ExitCode::failed, std::move(document.what),
                                 std::move(document.why), std::move(document.try_next));
    }
    result_.error->http_status = status;
  }

  std::filesystem::path path_;
  std::chrono::milliseconds timeout_;
  Clock::time_point until_;
  ClientResult result_;
  asio::io_context io_{1};
  Socket socket_{io_};
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
};

}  // namespace

AdminClient::AdminClient(std::filesystem::path socket, std::chrono::milliseconds timeout)
    : socket_(std::move(socket)), timeout_(timeout) {}

ClientResult AdminClient::get(const std::string& target) const {
  return Exchange(socket_, timeout_).run(http::verb::get, target, {});
}

ClientResult AdminClient::post(const std::string& target, std::string body) const {
  return Exchange(socket_, timeout_).run(http::verb::post, target, std::move(body));
}

std::string path_segment(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

int fail(const Context& context, const ClientError& error) {
  return context.fail(error.exit_code, error.what, error.why, error.try_next);
}

}  // namespace deltarelay::relayctl
