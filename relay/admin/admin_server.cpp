#include "relay/admin/admin_server.hpp"

#include <atomic>
#include <boost/asio/strand.hpp>
#include <cassert>

#include "relay/admin/admin_connection.hpp"
#include "relay/admin/admin_socket.hpp"
#include "relay/net/deadline.hpp"
#include "relay/net/task_group.hpp"

namespace deltarelay::relay::admin {
namespace {

namespace asio = boost::asio;
using net::io;

constexpr std::chrono::milliseconds accept_again_after{100};

/// Counts one connection while it lives.
struct Counted {
  std::atomic<std::size_t>& count;
  explicit Counted(std::atomic<std::size_t>& of) : count(of) { ++count; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --count; }
};

struct Client {
  Counted counted;
  AdminConnection connection;
  Client(std::atomic<std::size_t>& count, AdminConnection::Socket socket, const AdminOptions& options,
         const Routes& routes)
      : counted(count), connection(std::move(socket), options, routes) {}
};

asio::awaitable<void> serve(std::shared_ptr<Client> client, bool too_many) {
  auto work = too_many ? client->connection.turn_away() : client->connection.run();
  co_await std::move(work);
}

}  // namespace

/// Tasks refer to it by `this`: AdminServer's contract keeps it until they have ended.
struct AdminServer::State {
  State(asio::any_io_executor on, AdminOptions of)
      : executor(std::move(on)), options(std::move(of)), tasks(options.report) {}

  asio::awaitable<void> accept_loop();
  void take(AdminConnection::Socket socket);

  const asio::any_io_executor executor;
  const AdminOptions options;
  Routes routes;
  std::optional<AdminSocket> socket;
  std::atomic<std::size_t> connections = 0;
  net::TaskGroup tasks;
};

AdminServer::AdminServer(asio::any_io_executor executor, AdminOptions options)
    : state_(std::make_shared<State>(std::move(executor), std::move(options))) {}

AdminServer::~AdminServer() {
  assert(state_->tasks.size() == 0);
}

void AdminServer::route(std::string_view method, std::string_view pattern, AdminHandler handler,
                        std::chrono::steady_clock::duration answer_within) {
  assert(!state_->socket);
  state_->routes.add(method, pattern, std::move(handler), answer_within);
}

codec::Checked<void> AdminServer::start() {
  assert(!state_->socket);
  const asio::any_io_executor strand = asio::make_strand(state_->executor);
  auto opened = AdminSocket::open(strand, state_->options.path, state_->options.mode);
  if (!opened) return opened.error();
  state_->socket.emplace(std::move(*opened));
  State* const state = state_.get();
  const bool spawned = state->tasks.spawn(strand, [state] { return state->accept_loop(); });
  if (!spawned) state->socket.reset();  // stopped before it started
  return {};
}

void AdminServer::stop(std::function<void()> stopped) {
  state_->tasks.async_stop([state = state_, stopped = std::move(stopped)] {
    if (state->socket) state->socket->close();
    if (stopped) stopped();
  });
}

std::size_t AdminServer::connections() const {
  return state_->connections;
}

asio::awaitable<void> AdminServer::State::accept_loop() {
  for (;;) {
    asio::any_io_executor strand = asio::make_strand(executor);
    auto [error, client] = co_await socket->acceptor().async_accept(strand, io);
    if (!error) {
      take(std::move(client));
      continue;
    }
    // Out of descriptors, most likely: the one that waits stays in the queue, so trying at once would spin.
    asio::steady_timer pause(co_await asio::this_coro::executor, accept_again_after);
    co_await pause.async_wait(io);
  }
}

void AdminServer::State::take(AdminConnection::Socket socket_of_client) {
  // Turning away takes a moment too, so that is bounded as well: past it a connection just closes.
  if (connections >= 2 * options.connections_max) return;
  const bool too_many = connections >= options.connections_max;
  const asio::any_io_executor strand = socket_of_client.get_executor();
  auto client = std::make_shared<Client>(connections, std::move(socket_of_client), options, routes);
  // Moved on, not copied: the group's end of task comes before what the lambda holds is gone, and the client refers to
  // us.
  auto task = [client = std::move(client), too_many]() mutable { return serve(std::move(client), too_many); };
  const bool spawned = tasks.spawn(strand, std::move(task));
  static_cast<void>(spawned);  // when stopping, the connection just closes
}

}  // namespace deltarelay::relay::admin
