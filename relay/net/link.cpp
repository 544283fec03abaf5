// A link's life: start, the clock, the end. See link_impl.hpp for how the parts go together.
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/post.hpp>
#include <cassert>
#include <sstream>

#include "relay/net/deadline.hpp"
#include "relay/net/link_end.hpp"
#include "relay/net/link_impl.hpp"

namespace deltarelay::relay::net {
namespace asio = boost::asio;
namespace {

constexpr auto never = std::chrono::steady_clock::time_point::max();

std::string address_of(asio::ip::tcp::socket& socket) {
  boost::system::error_code failed;
  const auto endpoint = socket.remote_endpoint(failed);
  if (failed) return "unknown";
  std::ostringstream out;
  out << endpoint;
  return out.str();
}

std::string seconds(std::chrono::steady_clock::duration time) {
  std::ostringstream out;
  out << std::chrono::duration<double>(time).count() << " s";
  return out.str();
}

}  // namespace

LinkImpl::LinkImpl(LinkEnvironment environment, std::unique_ptr<TlsConnection> connection, PeerIdentity peer,
                   std::shared_ptr<void> place)
    : environment_(std::move(environment)),
      peer_(std::move(peer)),
      remote_address_(address_of(connection->socket())),
      queue_(environment_.config.send_queue_bytes_max),
      connection_(std::move(connection)),
      place_(std::move(place)),
      handlers_(std::make_shared<LinkHandlers>()),
      write_wanted_(connection_->stream.get_executor(), never),
      delivered_(connection_->stream.get_executor(), never),
      watch_timer_(connection_->stream.get_executor()) {
  assert(environment_.budget != nullptr && environment_.tasks != nullptr && environment_.handlers && environment_.cpu);
  boost::system::error_code ignored;
  connection_->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
}

bool LinkImpl::spawn_run() {
  auto task = [self = shared_from_this()]() -> asio::awaitable<void> { co_await self->run(); };
  return environment_.tasks->spawn(connection_->stream.get_executor(), std::move(task));
}

void LinkImpl::start(LinkHandlers handlers) {
  auto shared = std::make_shared<const LinkHandlers>(std::move(handlers));
  LinkEnd end;
  {
    const std::lock_guard lock(start_mutex_);
    if (phase_ == Phase::not_started) {
      handlers_ = shared;
      phase_ = Phase::running;
      if (spawn_run()) return;
      phase_ = Phase::over;
      end = LinkEnd{EndReason::stopped, "this process is stopping"};
    } else {
      end = LinkEnd{EndReason::closed_here, "closed before it was started"};
    }
  }
  if (shared->on_end) asio::post(environment_.handlers, [shared, end] { shared->on_end(end); });
}

void LinkImpl::send(codec::RecordPtr record, Lane lane) {
  switch (queue_.put(std::move(record), lane)) {
    case SendQueue::Put::queued:
    case SendQueue::Put::ignored:
      return;
    case SendQueue::Put::queued_wake:
      asio::post(write_wanted_.get_executor(), [self = shared_from_this()] { self->write_wanted_.cancel(); });
      return;
    case SendQueue::Put::full:
      asio::post(write_wanted_.get_executor(), [self = shared_from_this()] {
        self->end_now(EndReason::send_queue_full,
                      "more than " + std::to_string(self->environment_.config.send_queue_bytes_max) + " bytes queued");
      });
      return;
  }
}

void LinkImpl::close(std::string reason) {
  queue_.close();
  const std::lock_guard lock(start_mutex_);
  if (phase_ == Phase::over) return;
  if (phase_ == Phase::not_started) {
    phase_ = Phase::running;
    if (!spawn_run()) return;
  }
  asio::post(write_wanted_.get_executor(),
             [self = shared_from_this(), reason = std::move(reason)] { self->begin_close(reason); });
}

LinkCounts LinkImpl::counts() const {
  LinkCounts out;
  out.received_bytes = received_bytes_.load(std::memory_order_relaxed);
  out.sent_bytes = sent_bytes_.load(std::memory_order_relaxed);
  out.received_records = received_records_.load(std::memory_order_relaxed);
  out.rejected_records = rejected_records_.load(std::memory_order_relaxed);
  return out;
}

asio::awaitable<void> LinkImpl::run() {
  using namespace asio::experimental::awaitable_operators;
  co_await asio::this_coro::throw_if_cancelled(false);
  note_bytes();
  co_await (read_loop() || write_loop() || watch());

  const auto cancellation = co_await asio::this_coro::cancellation_state;
  const bool stopping = cancellation.cancelled() != asio::cancellation_type::none;
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  if (!end_ && write_failure_) note_end(*write_failure_);
  if (!end_ && stopping) end_.emplace(LinkEnd{EndReason::stopped, "this process is stopping"});
  if (!end_) note_end(LinkEnd{EndReason::closed_here, ""});
  queue_.abandon();
  if (!stopping) co_await close_in_order();
  note_bytes();
  boost::system::error_code ignored;
  connection_->socket().close(ignored);
  co_await wait_for_deliveries();
  finish();
}

/// Records that were read and are being verified are the peer's, and are handed over before the end is.
asio::awaitable<void> LinkImpl::wait_for_deliveries() {
  while (!deliveries_.empty()) co_await delivered_.async_wait(io);
}

void LinkImpl::finish() {
  {
    const std::lock_guard lock(start_mutex_);
    phase_ = Phase::over;
  }
  place_.reset();  // first: who hears of the end may count on the place
  if (handlers_->on_end)
    asio::post(environment_.handlers, [handlers = handlers_, end = *end_] { handlers->on_end(end); });
  handlers_ = std::make_shared<LinkHandlers>();  // they often hold the link itself
}

void LinkImpl::begin_close(std::string reason) {
  if (end_ || close_reason_) return;
  close_reason_ = std::move(reason);
  close_at_ = Clock::now() + environment_.config.close_within;
  write_wanted_.cancel();
  watch_timer_.cancel();
}

void LinkImpl::end_now(EndReason why, std::string detail) {
  note_end(LinkEnd{why, std::move(detail)});
  watch_timer_.cancel();
}

/// The first reason stands. Once close() was called, it is the reason, whatever goes wrong on the way.
void LinkImpl::note_end(LinkEnd end) {
  if (end_) return;
  // A write that fails takes the socket's error with it, and the reader finds a mere end.
  if (end.why == EndReason::truncated && write_failure_) end = *write_failure_;
  if (close_reason_ && end.why != EndReason::internal_error) end = LinkEnd{EndReason::closed_here, *close_reason_};
  end_ = std::move(end);
}

void LinkImpl::note_bytes() {
  SSL* ssl = connection_->stream.native_handle();
  // What OpenSSL has taken of the wire's bytes and given to it, parts of unfinished TLS records included.
  const std::uint64_t in = BIO_number_read(SSL_get_rbio(ssl));
  if (in != received_bytes_.load(std::memory_order_relaxed)) {
    received_bytes_.store(in, std::memory_order_relaxed);
    if (read_since_) read_since_ = Clock::now();
  }
  sent_bytes_.store(BIO_number_written(SSL_get_wbio(ssl)), std::memory_order_relaxed);
}

std::optional<LinkEnd> LinkImpl::passed_deadline(Clock::time_point now) const {
  const LinkConfig& config = environment_.config;
  if (close_at_ && now >= *close_at_) return LinkEnd{EndReason::closed_here, *close_reason_};
  if (write_failure_at_ && now >= *write_failure_at_) return write_failure_;
  if (write_since_ && now >= *write_since_ + config.progress_after)
    return LinkEnd{EndReason::no_progress, "the peer took no byte for " + seconds(config.progress_after)};
  if (read_since_ && now >= *read_since_ + config.dead_after)
    return LinkEnd{EndReason::silent, "no byte came for " + seconds(config.dead_after)};
  return std::nullopt;
}

/// A quarter of the shortest limit, or a deadline that is nearer: reads and writes only note times and set no timers.
LinkImpl::Clock::time_point LinkImpl::next_look(Clock::time_point now) const {
  const LinkConfig& config = environment_.config;
  const Clock::duration quarter = std::min(config.dead_after, config.progress_after) / 4;
  Clock::time_point next = now + std::max<Clock::duration>(quarter, std::chrono::milliseconds(1));
  if (close_at_) next = std::min(next, *close_at_);
  if (write_failure_at_) next = std::min(next, *write_failure_at_);
  if (write_since_) next = std::min(next, *write_since_ + config.progress_after);
  if (read_since_) next = std::min(next, *read_since_ + config.dead_after);
  return next;
}

/// A process that was stopped for a while, with its machine or alone, must not take its own sleep for the peer's
/// silence: what came meanwhile is still in the socket.
void LinkImpl::forgive(Clock::duration late) {
  if (late <= Clock::duration::zero()) return;
  const auto now = Clock::now();
  if (read_since_) read_since_ = std::min(now, *read_since_ + late);
  if (write_since_) write_since_ = std::min(now, *write_since_ + late);
}

asio::awaitable<void> LinkImpl::watch() {
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!end_) {
    note_bytes();
    const auto now = Clock::now();
    if (auto passed = passed_deadline(now)) {
      note_end(std::move(*passed));
      co_return;
    }
    const auto due = next_look(now);
    watch_timer_.expires_at(due);
    co_await watch_timer_.async_wait(io);
    forgive(Clock::now() - due);
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return;
  }
}

/// close_notify, then the end of our direction, then what the peer still sends is read and dropped until it ends too: a
/// socket that is closed with unread bytes in it resets the connection, and the peer might lose our last records.
asio::awaitable<void> LinkImpl::close_in_order() {
  const bool by_peer = end_->why == EndReason::closed_by_peer;
  const bool in_order = by_peer || end_->why == EndReason::closed_here || end_->why == EndReason::bad_record;
  if (!in_order || write_unfinished_) co_return;
  const auto until = close_at_.value_or(Clock::now() + environment_.config.close_within);

  // As if the peer's close_notify were there: async_shutdown would otherwise wait for it and trip over data.
  SSL_set_shutdown(connection_->stream.native_handle(), SSL_RECEIVED_SHUTDOWN);
  const auto sent = co_await with_deadline(connection_->stream.async_shutdown(io), until - Clock::now());
  if (!sent || std::get<0>(*sent)) co_return;
  boost::system::error_code failed;
  connection_->socket().shutdown(asio::ip::tcp::socket::shutdown_send, failed);
  if (failed || by_peer) co_return;

  scratch_.resize(16 * codec::kib);
  while (Clock::now() < until) {
    const auto buffer = asio::buffer(scratch_);
    const auto read = co_await with_deadline(connection_->socket().async_read_some(buffer, io), until - Clock::now());
    if (!read || std::get<0>(*read)) co_return;
  }
}

}  // namespace deltarelay::relay::net
