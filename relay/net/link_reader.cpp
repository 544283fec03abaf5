// The receiving half of a link: header, check, budget, payload, SHA-256 elsewhere, delivery in order.
//
// Nothing is allocated for a payload before its header was checked and the budget has given the bytes. Not reading is
// the brake: while the budget or the verification is behind, the socket's buffer fills and TCP slows the peer down.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <string>

#include "relay/net/deadline.hpp"
#include "relay/net/link_end.hpp"
#include "relay/net/link_impl.hpp"

namespace deltarelay::relay::net {
namespace asio = boost::asio;
namespace {

constexpr std::size_t scratch_bytes = 16 * codec::kib;

/// A log record of a newer minor version: skipped by its length, as FORMAT.md says.
bool is_known(codec::RecordType type) noexcept {
  return type >= codec::RecordType::link_first ||
         (type >= codec::RecordType::begin && type <= codec::RecordType::layout);
}

}  // namespace

asio::awaitable<void> LinkImpl::read_loop() {
  co_await asio::this_coro::throw_if_cancelled(false);
  try {
    co_await read_records();
  } catch (const std::exception& escaped) {
    note_end(LinkEnd{EndReason::internal_error, escaped.what()});
  }
}

asio::awaitable<void> LinkImpl::read_records() {
  for (;;) {
    // Not in the loop's condition: g++ 12 makes that an illegal instruction when the body is empty.
    const bool more = co_await read_record();
    if (!more) co_return;
  }
}

/// False when the link has ended, or reading was cancelled because it is about to.
asio::awaitable<bool> LinkImpl::read_record() {
  if (!co_await read_exactly(header_bytes_, false)) co_return false;
  const auto header = codec::decode_record_header(header_bytes_);
  if (!header) {
    note_end(LinkEnd{EndReason::bad_record, header.error().message()});
    co_return false;
  }
  if (!co_await wait_for_place()) co_return false;
  codec::Result<void> checked;
  if (environment_.check) checked = environment_.check(*header, header_bytes_);
  if (!checked && !header->is_log_record()) {
    note_end(LinkEnd{EndReason::bad_record, checked.error().message()});
    co_return false;
  }
  if (!checked) {
    auto refused = std::make_shared<Delivery>();
    refused->header = *header;
    refused->verdict = checked.error();
    deliveries_.push_back(std::move(refused));
    deliver();
    co_return co_await skip(header->payload_bytes);
  }
  if (!is_known(header->type)) co_return co_await skip(header->payload_bytes);
  co_return co_await read_payload(*header);
}

asio::awaitable<bool> LinkImpl::read_payload(codec::RecordHeader header) {
  const std::size_t size = codec::record_header_bytes + header.payload_bytes;
  auto hold = co_await environment_.budget->acquire(size);
  if (!hold) {
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() == asio::cancellation_type::none)
      note_end(LinkEnd{EndReason::stopped, "this process is stopping"});
    co_return false;
  }
  auto delivery = std::make_shared<Delivery>();
  delivery->header = header;
  delivery->hold = std::move(*hold);
  delivery->record = std::make_shared<codec::Record>();
  delivery->record->header = header;
  delivery->record->bytes = std::vector<std::byte>(size);
  std::copy(header_bytes_.begin(), header_bytes_.end(), delivery->record->bytes.begin());
  const codec::MutableBytes payload = codec::MutableBytes(delivery->record->bytes).subspan(codec::record_header_bytes);
  if (!co_await read_exactly(payload, true)) co_return false;

  deliveries_.push_back(delivery);
  if (header.is_log_record()) {
    verify_on_cpu(delivery);
  } else {
    delivery->verdict = codec::error_code();
    deliver();
  }
  co_return true;
}

asio::awaitable<bool> LinkImpl::read_exactly(codec::MutableBytes into, bool inside_record) {
  while (!into.empty()) {
    read_since_ = Clock::now();
    const auto buffer = asio::buffer(into.data(), into.size());
    const auto [failed, count] = co_await connection_->stream.async_read_some(buffer, io);
    note_bytes();
    read_since_.reset();
    if (failed) {
      const auto cancellation = co_await asio::this_coro::cancellation_state;
      if (cancellation.cancelled() == asio::cancellation_type::none) note_end(link_end_of(failed, inside_record));
      co_return false;
    }
    into = into.subspan(count);
    inside_record = true;
  }
  co_return true;
}

asio::awaitable<bool> LinkImpl::skip(std::size_t bytes) {
  scratch_.resize(scratch_bytes);
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, scratch_.size());
    if (!co_await read_exactly(codec::MutableBytes(scratch_).first(piece), true)) co_return false;
    bytes -= piece;
  }
  co_return true;
}

/// Bounds how many records wait for their SHA-256.
asio::awaitable<bool> LinkImpl::wait_for_place() {
  while (deliveries_.size() >= environment_.config.verifying_records_max) {
    co_await delivered_.async_wait(io);
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return false;
  }
  co_return true;
}

void LinkImpl::verify_on_cpu(const std::shared_ptr<Delivery>& delivery) {
  asio::post(environment_.cpu, [self = shared_from_this(), delivery] {
    codec::error_code verdict;
    std::string failure;
    try {
      if (const auto checked = codec::verify_record_payload(*delivery->record); !checked) verdict = checked.error();
    } catch (const std::exception& escaped) {
      failure = escaped.what();
      if (failure.empty()) failure = "verifying failed";
    }
    asio::post(self->watch_timer_.get_executor(), [self, delivery, verdict, failure] {
      delivery->verdict = verdict;
      delivery->failure = failure;
      self->deliver();
    });
  });
}

void LinkImpl::deliver() {
  while (!deliveries_.empty() && deliveries_.front()->verdict) {
    const std::shared_ptr<Delivery> next = std::move(deliveries_.front());
    deliveries_.pop_front();
    if (!next->failure.empty()) {
      end_now(EndReason::internal_error, next->failure);
    } else if (!*next->verdict) {
      received_records_.fetch_add(1, std::memory_order_relaxed);
      if (handlers_->on_record) {
        asio::post(environment_.handlers, [handlers = handlers_, record = codec::RecordPtr(std::move(next->record)),
                                           hold = std::move(next->hold)]() mutable {
          handlers->on_record(std::move(record), std::move(hold));
        });
      }
    } else {
      rejected_records_.fetch_add(1, std::memory_order_relaxed);
      if (handlers_->on_rejected) {
        asio::post(environment_.handlers, [handlers = handlers_, header = next->header, why = *next->verdict] {
          handlers->on_rejected(header, why);
        });
      }
    }
  }
  delivered_.cancel();
}

}  // namespace deltarelay::relay::net
