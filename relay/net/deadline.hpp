// A wait with a limit: runs one awaitable against a timer, so that no wait of the daemon is for ever.
//
// The limit's meaning belongs to the caller, who names it in the error. After a deadline that cut off a TLS operation the
// stream is of no further use: close the socket (a TLS record may be half sent). Runs on the caller's strand.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <utility>

namespace deltarelay::relay::net {

/// Every asynchronous call returns its error as a value; with plain use_awaitable `a || timer` would swallow a failure of
/// `a` until the timer ends.
inline constexpr auto io = boost::asio::as_tuple(boost::asio::use_awaitable);

/// The result of `op`, or nullopt when `limit` passed first; then `op` has been cancelled and has ended.
/// REQUIRES that `op` supports cancellation (sockets, timers and TLS streams do, resolvers do not).
template <class T>
boost::asio::awaitable<std::optional<T>> with_deadline(boost::asio::awaitable<T> op,
                                                       std::chrono::steady_clock::duration limit) {
  using namespace boost::asio::experimental::awaitable_operators;
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, limit);
  auto first = co_await (std::move(op) || timer.async_wait(io));
  if (first.index() == 1) co_return std::nullopt;
  co_return std::get<0>(std::move(first));
}

}  // namespace deltarelay::relay::net
