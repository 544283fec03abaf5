#include "relay/shell/outbox.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

namespace deltarelay::relay {

void Outbox::push(Job job, Sent sent) {
  if (stopped_) return;
  waiting_.push_back({std::move(job), std::move(sent)});
  pump();
}

void Outbox::pump() {
  if (stopped_ || reading_ || waiting_.empty() || underway_bytes_ >= window_bytes_) return;
  reading_ = true;
  auto next = std::make_shared<Waiting>(std::move(waiting_.front()));
  waiting_.pop_front();
  boost::asio::post(readers_, [self = shared_from_this(), next] {
    auto records = std::make_shared<std::vector<codec::RecordPtr>>(next->job());
    boost::asio::post(self->core_, [self, next, records] { self->produced(std::move(*records), next->sent); });
  });
}

void Outbox::produced(std::vector<codec::RecordPtr> records, const Sent& sent) {
  reading_ = false;
  if (stopped_) return;
  std::uint64_t bytes = 0;
  for (codec::RecordPtr& record : records) {
    bytes += record->bytes.size();
    link_->send(std::move(record), net::Lane::data);
  }
  if (bytes != 0) {
    underway_.push_back({bytes, bytes, sent});
    underway_bytes_ += bytes;
  } else if (sent) {
    sent(0);
  }
  pump();
}

void Outbox::on_sent(std::uint64_t bytes) {
  std::vector<Underway> done;
  while (bytes != 0 && !underway_.empty()) {
    Underway& front = underway_.front();
    const std::uint64_t taken = std::min(bytes, front.left);
    front.left -= taken;
    bytes -= taken;
    underway_bytes_ -= taken;
    if (front.left != 0) break;
    done.push_back(std::move(front));
    underway_.pop_front();
  }
  // After the books are in order: `sent` may push.
  for (const Underway& sent : done)
    if (sent.sent) sent.sent(sent.bytes);
  pump();
}

}  // namespace deltarelay::relay
