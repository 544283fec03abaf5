// See fake_daemon.hpp.
#include "tests/tools/relayctl/fake_daemon.hpp"

#include <stdlib.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace deltarelay::relayctl::test {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Protocol = asio::local::stream_protocol;

struct Prepared {
  unsigned status = 200;
  std::string body;
};

struct FakeDaemon::State {
  std::filesystem::path directory;
  asio::io_context io;
  Protocol::acceptor acceptor{io};
  std::mutex mutex;
  std::map<std::string, std::deque<Prepared>> answers;
  std::vector<std::string> asked;
  bool silent = false, stopped = false;
  std::vector<std::unique_ptr<Protocol::socket>> kept;  // open while nothing is said on them
  std::thread thread;

  void run() {
    for (;;) {
      auto socket = std::make_unique<Protocol::socket>(io);
      boost::system::error_code failed;
      acceptor.accept(*socket, failed);
      const std::scoped_lock lock(mutex);
      if (failed || stopped) return;
      if (silent) {
        kept.push_back(std::move(socket));
      } else {
        serve(*socket);
      }
    }
  }

  void serve(Protocol::socket& socket) {
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> request;
    boost::system::error_code failed;
    http::read(socket, buffer, request, failed);
    if (failed) return;
    const std::string question = std::string(request.method_string()) + ' ' + std::string(request.target());
    asked.push_back(request.body().empty() ? question : question + ' ' + request.body());
    http::response<http::string_body> response(http::status::not_found, 11);
    auto& queue = answers[question];
    if (!queue.empty()) {
      response.result(queue.front().status);
      response.body() = queue.front().body;
      if (queue.size() > 1) queue.pop_front();
    }
    response.prepare_payload();
    http::write(socket, response, failed);
  }
};

FakeDaemon::FakeDaemon() : state_(std::make_unique<State>()) {
  std::string name = (std::filesystem::temp_directory_path() / "relayctl-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  state_->directory = name;
  state_->acceptor.open();
  state_->acceptor.bind(Protocol::endpoint(socket()));
  state_->acceptor.listen();
  state_->thread = std::thread([this] { state_->run(); });
}

FakeDaemon::~FakeDaemon() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopped = true;
  }
  // A connection wakes accept(), which closing the descriptor under it would not.
  boost::system::error_code ignored;
  Protocol::socket waker(state_->io);
  waker.connect(Protocol::endpoint(socket()), ignored);
  state_->thread.join();
  std::filesystem::remove_all(state_->directory, ignored);
}

std::string FakeDaemon::socket() const {
  return (state_->directory / "admin.sock").string();
}

void FakeDaemon::answer(const std::string& question, const std::string& body, unsigned http_status) {
  const std::scoped_lock lock(state_->mutex);
  state_->answers[question].push_back({http_status, body});
}

void FakeDaemon::fall_silent() {
  const std::scoped_lock lock(state_->mutex);
  state_->silent = true;
}

std::vector<std::string> FakeDaemon::asked() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->asked;
}

}  // namespace deltarelay::relayctl::test
