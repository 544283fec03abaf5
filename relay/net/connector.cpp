// One attempt to reach one node: every address of its name in turn, until one of them is the node meant.
#include "relay/net/connector.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <sstream>

#include "relay/net/deadline.hpp"
#include "relay/net/handshake.hpp"
#include "relay/net/link_impl.hpp"
#include "relay/net/resolve.hpp"

namespace deltarelay::relay::net {
namespace {
namespace asio = boost::asio;
using asio::ip::tcp;

struct Attempt {
  LinkEnvironment environment;
  std::shared_ptr<TlsContext> tls;
  ConnectTarget target;
  ConnectConfig config;
  std::function<void(ConnectResult)> handler;
};

ConnectResult refused(Refusal why, std::string detail) {
  ConnectResult out;
  out.refusal = why;
  out.detail = std::move(detail);
  return out;
}

std::string text_of(const tcp::endpoint& endpoint) {
  std::ostringstream out;
  out << endpoint;
  return out.str();
}

asio::awaitable<bool> is_stopping() {
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  co_return cancellation.cancelled() != asio::cancellation_type::none;
}

asio::awaitable<ConnectResult> try_address(const Attempt& attempt, tcp::endpoint endpoint) {
  const asio::any_io_executor strand = co_await asio::this_coro::executor;
  const std::string at = text_of(endpoint);
  tcp::socket socket(strand);
  const auto connected = co_await with_deadline(socket.async_connect(endpoint, io), attempt.config.connect_within);
  if (co_await is_stopping()) co_return refused(Refusal::stopped, "this process is stopping");
  if (!connected) co_return refused(Refusal::connect_timeout, at + ": no answer in time");
  if (std::get<0>(*connected))
    co_return refused(Refusal::connect_failed, at + ": " + std::get<0>(*connected).message());

  auto connection = std::make_unique<TlsConnection>(std::move(socket), attempt.tls->current());
  HandshakeOrder order;
  order.side = asio::ssl::stream_base::client;
  order.node = attempt.target.node;
  order.roles = std::vector<Role>({Role::root, Role::relay});
  order.within = attempt.config.handshake_within;
  HandshakeResult result = co_await shake_hands(*connection, order);
  if (co_await is_stopping()) co_return refused(Refusal::stopped, "this process is stopping");
  if (result.refusal != Refusal::none) co_return refused(result.refusal, at + ": " + result.detail);

  ConnectResult out;
  out.link = std::make_shared<LinkImpl>(attempt.environment, std::move(connection), std::move(result.peer), nullptr);
  co_return out;
}

/// Of several failures the one that came furthest says most; Refusal is in the order of the stages.
void keep_telling(ConnectResult& worst, ConnectResult next) {
  if (next.refusal >= worst.refusal) worst = std::move(next);
}

asio::awaitable<ConnectResult> connect(const Attempt& attempt) {
  ResolveResult found = co_await resolve(attempt.target.address, attempt.config.resolve_within);
  if (found.refusal != Refusal::none) co_return refused(found.refusal, found.detail);
  ConnectResult worst;
  for (const tcp::endpoint& endpoint : found.endpoints) {
    ConnectResult result = co_await try_address(attempt, endpoint);
    if (result.refusal == Refusal::none || result.refusal == Refusal::stopped) co_return result;
    keep_telling(worst, std::move(result));
  }
  co_return worst;
}

void answer(const Attempt& attempt, ConnectResult result) {
  asio::post(attempt.environment.handlers,
             [handler = attempt.handler, result = std::move(result)]() mutable { handler(std::move(result)); });
}

asio::awaitable<void> run(std::shared_ptr<Attempt> attempt) {
  co_await asio::this_coro::throw_if_cancelled(false);
  ConnectResult result;
  try {
    result = co_await connect(*attempt);
  } catch (const std::exception& escaped) {
    result = refused(Refusal::handshake_failed, escaped.what());
  }
  answer(*attempt, std::move(result));
}

}  // namespace

void async_connect(LinkEnvironment environment, std::shared_ptr<TlsContext> tls, ConnectTarget target,
                   ConnectConfig config, std::function<void(ConnectResult)> handler) {
  auto attempt = std::make_shared<Attempt>();
  attempt->environment = std::move(environment);
  attempt->tls = std::move(tls);
  attempt->target = std::move(target);
  attempt->config = config;
  attempt->handler = std::move(handler);
  const asio::any_io_executor strand = asio::make_strand(attempt->environment.io);
  if (!attempt->environment.tasks->spawn(strand, [attempt] { return run(attempt); }))
    answer(*attempt, refused(Refusal::stopped, "this process is stopping"));
}

}  // namespace deltarelay::relay::net
