// The accept loop, and one task per handshake under it.
//
// The loop's task belongs to the environment's group; the handshakes belong to a group of the listener's own, which the
// loop stops and waits for before it ends. So stopping either way leaves nothing behind.
#include "relay/net/listener.hpp"

#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <cassert>
#include <mutex>

#include "relay/net/deadline.hpp"
#include "relay/net/handshake.hpp"
#include "relay/net/link_impl.hpp"
#include "relay/net/net_error.hpp"
#include "relay/net/places.hpp"

namespace deltarelay::relay::net {
namespace {
namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using asio::ip::tcp;

/// How long the loop rests when the system has no descriptor or memory for a connection.
constexpr auto shortage_pause = std::chrono::milliseconds(50);

class ListenerImpl final : public Listener, public std::enable_shared_from_this<ListenerImpl> {
 public:
  ListenerImpl(LinkEnvironment environment, std::shared_ptr<TlsContext> tls, ListenerConfig config)
      : environment_(std::move(environment)),
        tls_(std::move(tls)),
        config_(std::move(config)),
        strand_(asio::make_strand(environment_.io)),
        acceptor_(strand_),
        handshakes_ended_(strand_, Clock::time_point::max()),
        handshake_places_(config_.handshakes_max),
        link_places_(config_.links_max),
        handshakes_([this](const std::string& text) { refuse(Refusal::handshake_failed, "", text); }) {}

  [[nodiscard]] codec::Checked<void> bind();
  void start(OnLink on_link) override;
  void stop() override;
  [[nodiscard]] std::uint16_t port() const noexcept override { return port_; }
  [[nodiscard]] Counts refused() const override;
  [[nodiscard]] std::size_t handshakes() const override { return handshake_places_.taken(); }

 private:
  asio::awaitable<void> run();
  asio::awaitable<void> accept_connections();
  asio::awaitable<void> rest(const boost::system::error_code& why);
  asio::awaitable<void> end_handshakes();
  void admit(tcp::socket socket, asio::any_io_executor strand);
  asio::awaitable<void> welcome(std::shared_ptr<tcp::socket> socket, std::shared_ptr<void> place);
  void hand_over(std::unique_ptr<TlsConnection> connection, PeerIdentity peer);
  void refuse(Refusal why, const std::string& from, const std::string& detail);

  const LinkEnvironment environment_;
  const std::shared_ptr<TlsContext> tls_;
  const ListenerConfig config_;
  const asio::any_io_executor strand_;
  tcp::acceptor acceptor_;                 // strand
  asio::steady_timer handshakes_ended_;    // strand
  bool handshakes_over_ = false;           // strand
  std::uint16_t port_ = 0;                 // written by bind() alone
  std::shared_ptr<const OnLink> on_link_;  // written by start() alone
  std::atomic<bool> started_{false}, stopping_{false};
  Places handshake_places_, link_places_;
  std::array<std::atomic<std::uint64_t>, refusal_count> refused_{};
  std::mutex log_mutex_;
  std::array<std::optional<Clock::time_point>, refusal_count> logged_at_{};  // under log_mutex_
  TaskGroup handshakes_;                                                     // last: its tasks use the rest
};

codec::Checked<void> ListenerImpl::bind() {
  const std::string where = config_.address + " port " + std::to_string(config_.port);
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(config_.address, failed);
  if (failed) return codec::Failure{net_errc::listen_failed, where, "the address is not a numeric one"};
  const tcp::endpoint endpoint(address, config_.port);
  acceptor_.open(endpoint.protocol(), failed);
  if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor_.bind(endpoint, failed);
  if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return codec::Failure{net_errc::listen_failed, where, failed.message()};
  port_ = acceptor_.local_endpoint(failed).port();
  if (failed) return codec::Failure{net_errc::listen_failed, where, failed.message()};
  return {};
}

void ListenerImpl::start(OnLink on_link) {
  const bool again = started_.exchange(true);
  assert(!again);
  (void)again;
  on_link_ = std::make_shared<const OnLink>(std::move(on_link));
  auto task = [self = shared_from_this()]() -> asio::awaitable<void> { co_await self->run(); };
  // A group that is stopping needs no links any more; the socket closes with this object.
  if (!environment_.tasks->spawn(strand_, std::move(task))) stopping_ = true;
}

void ListenerImpl::stop() {
  if (stopping_.exchange(true)) return;
  asio::post(strand_, [self = shared_from_this()] {
    boost::system::error_code ignored;
    self->acceptor_.close(ignored);
  });
}

Listener::Counts ListenerImpl::refused() const {
  Counts out{};
  for (std::size_t i = 0; i < out.size(); ++i) out.at(i) = refused_.at(i).load(std::memory_order_relaxed);
  return out;
}

asio::awaitable<void> ListenerImpl::run() {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await accept_connections();
  stopping_ = true;
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  co_await end_handshakes();
}

asio::awaitable<void> ListenerImpl::accept_connections() {
  while (!stopping_) {
    asio::any_io_executor strand = asio::make_strand(environment_.io);
    auto [failed, socket] = co_await acceptor_.async_accept(strand, io);
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (stopping_ || cancellation.cancelled() != asio::cancellation_type::none) co_return;
    if (failed) {
      co_await rest(failed);
      continue;
    }
    admit(std::move(socket), strand);
  }
}

/// A connection that died before it was accepted costs nothing; a shortage would come back at once.
asio::awaitable<void> ListenerImpl::rest(const boost::system::error_code& why) {
  if (why == asio::error::connection_aborted || why == asio::error::connection_reset) co_return;
  refuse(Refusal::connect_failed, "", "accept: " + why.message());
  asio::steady_timer pause(strand_, shortage_pause);
  co_await pause.async_wait(io);
}

asio::awaitable<void> ListenerImpl::end_handshakes() {
  handshakes_.async_stop([self = shared_from_this()] {
    asio::post(self->strand_, [self] {
      self->handshakes_over_ = true;
      self->handshakes_ended_.cancel();
    });
  });
  while (!handshakes_over_) co_await handshakes_ended_.async_wait(io);
}

std::string text_of(const tcp::socket& socket) {
  boost::system::error_code failed;
  const auto endpoint = socket.remote_endpoint(failed);
  return failed ? std::string("unknown") : endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
}

void ListenerImpl::admit(tcp::socket socket, asio::any_io_executor strand) {
  if (link_places_.taken() >= config_.links_max) {
    refuse(Refusal::too_many_connections, text_of(socket), "links_max is " + std::to_string(config_.links_max));
    return;
  }
  std::shared_ptr<void> place = handshake_places_.take();
  if (place == nullptr) {
    refuse(Refusal::too_many_handshakes, text_of(socket),
           "handshakes_max is " + std::to_string(config_.handshakes_max));
    return;
  }
  // Shared, because a task must be copyable.
  auto shared = std::make_shared<tcp::socket>(std::move(socket));
  auto task = [self = shared_from_this(), shared, place]() mutable -> asio::awaitable<void> {
    co_await self->welcome(std::move(shared), std::move(place));
  };
  (void)handshakes_.spawn(std::move(strand), std::move(task));  // refused only when this listener is stopping
}

asio::awaitable<void> ListenerImpl::welcome(std::shared_ptr<tcp::socket> socket, std::shared_ptr<void> place) {
  co_await asio::this_coro::throw_if_cancelled(false);
  const std::string from = text_of(*socket);
  auto connection = std::make_unique<TlsConnection>(std::move(*socket), tls_->current());
  HandshakeOrder order;
  order.side = asio::ssl::stream_base::server;
  order.roles = config_.roles;
  order.within = config_.handshake_within;
  HandshakeResult result = co_await shake_hands(*connection, order);
  place.reset();
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  if (cancellation.cancelled() != asio::cancellation_type::none) {
    refuse(Refusal::stopped, from, "this process is stopping");
  } else if (result.refusal != Refusal::none) {
    refuse(result.refusal, from, result.detail);
  } else {
    hand_over(std::move(connection), std::move(result.peer));
  }
}

void ListenerImpl::hand_over(std::unique_ptr<TlsConnection> connection, PeerIdentity peer) {
  std::shared_ptr<void> place = link_places_.take();
  if (place == nullptr) {
    refuse(Refusal::too_many_connections, peer.node, "links_max is " + std::to_string(config_.links_max));
    return;
  }
  auto link = std::make_shared<LinkImpl>(environment_, std::move(connection), peer, std::move(place));
  asio::post(environment_.handlers,
             [on_link = on_link_, link = std::move(link), peer = std::move(peer)] { (*on_link)(link, peer); });
}

void ListenerImpl::refuse(Refusal why, const std::string& from, const std::string& detail) {
  const auto index = static_cast<std::size_t>(why);
  const std::uint64_t count = refused_.at(index).fetch_add(1, std::memory_order_relaxed) + 1;
  if (why == Refusal::stopped) return;
  const auto logger = spdlog::get("relay.net");
  if (logger == nullptr) return;
  {
    const std::lock_guard lock(log_mutex_);
    const auto now = Clock::now();
    auto& last = logged_at_.at(index);
    if (last && now - *last < std::chrono::seconds(1)) return;
    last = now;
  }
  logger->warn("connection from {} refused: {} ({}); {} so far", from, code(why), detail, count);
}

}  // namespace

codec::Checked<std::shared_ptr<Listener>> Listener::open(LinkEnvironment environment, std::shared_ptr<TlsContext> tls,
                                                         ListenerConfig config) {
  auto out = std::make_shared<ListenerImpl>(std::move(environment), std::move(tls), std::move(config));
  if (auto bound = out->bind(); !bound) return bound.error();
  return std::shared_ptr<Listener>(std::move(out));
}

}  // namespace deltarelay::relay::net
