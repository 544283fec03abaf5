// The sending half of a link: batches of the queue, one TLS write at a time, each with its time noted for the watch.
#include <boost/asio/post.hpp>

#include "relay/net/deadline.hpp"
#include "relay/net/link_end.hpp"
#include "relay/net/link_impl.hpp"

namespace deltarelay::relay::net {
namespace asio = boost::asio;

asio::awaitable<void> LinkImpl::write_loop() {
  co_await asio::this_coro::throw_if_cancelled(false);
  try {
    co_await write_batches();
  } catch (const std::exception& escaped) {
    note_end(LinkEnd{EndReason::internal_error, escaped.what()});
  }
  // A failed write: the reader may yet find why, such as an alert that came before the reset. The watch bounds that.
  while (write_failure_) {
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return;
    co_await write_wanted_.async_wait(io);
  }
}

asio::awaitable<void> LinkImpl::write_batches() {
  SendQueue::Batch batch;
  for (;;) {
    if (queue_.take(batch)) {
      if (!co_await write_all(batch.bytes())) co_return;
      report_sent(batch);
      continue;
    }
    if (close_reason_) co_return;  // all is sent
    co_await write_wanted_.async_wait(io);
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return;
  }
}

asio::awaitable<bool> LinkImpl::write_all(codec::Bytes bytes) {
  write_unfinished_ = true;
  while (!bytes.empty()) {
    renew_keys();
    write_since_ = Clock::now();
    const auto buffer = asio::buffer(bytes.data(), bytes.size());
    const auto [failed, count] = co_await connection_->stream.async_write_some(buffer, io);
    note_bytes();
    write_since_.reset();
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return false;
    if (failed) {
      LinkEnd end = link_end_of(failed, true);
      if (read_since_) {
        write_failure_ = std::move(end);
        write_failure_at_ = Clock::now() + environment_.config.close_within;
        watch_timer_.cancel();
      } else {
        note_end(std::move(end));
      }
      co_return false;
    }
    bytes = bytes.subspan(count);
    key_bytes_ += count;
  }
  write_unfinished_ = false;
  co_return true;
}

/// OpenSSL 3 does not do so by itself. Between two writes only: the next one carries the message along.
void LinkImpl::renew_keys() {
  if (key_bytes_ < environment_.config.rekey_after_bytes) return;
  if (SSL_key_update(connection_->stream.native_handle(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) key_bytes_ = 0;
}

void LinkImpl::report_sent(const SendQueue::Batch& batch) {
  if (!handlers_->on_sent) return;
  for (const Lane lane : {Lane::control, Lane::data}) {
    const std::uint64_t bytes = batch.lane_bytes.at(static_cast<std::size_t>(lane));
    if (bytes > 0)
      asio::post(environment_.handlers, [handlers = handlers_, bytes, lane] { handlers->on_sent(bytes, lane); });
  }
}

}  // namespace deltarelay::relay::net
