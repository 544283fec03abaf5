#include "relay/net/send_queue.hpp"

#include <cstring>
#include <utility>

namespace deltarelay::relay::net {
namespace {

/// The plain text of the largest TLS record: more would not make fewer of them.
constexpr std::size_t joined_bytes_max = 16 * codec::kib;

}  // namespace

SendQueue::Put SendQueue::put(codec::RecordPtr record, Lane lane) {
  const std::size_t size = record->bytes.size();
  const std::lock_guard lock(mutex_);
  if (closed_) return Put::ignored;
  if (queued_bytes_ > 0 && (queued_bytes_ >= bytes_max_ || size > bytes_max_ - queued_bytes_)) {
    closed_ = true;
    return Put::full;
  }
  queued_bytes_ += size;
  lanes_.at(static_cast<std::size_t>(lane)).push_back(std::move(record));
  return std::exchange(writer_waits_, false) ? Put::queued_wake : Put::queued;
}

bool SendQueue::take(Batch& out) {
  out.joined.clear();
  out.large.reset();
  out.lane_bytes = {};
  const std::lock_guard lock(mutex_);
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    auto& records = lanes_.at(lane);
    for (; !records.empty(); records.pop_front()) {
      const codec::RecordPtr& next = records.front();
      const std::size_t size = next->bytes.size();
      if (out.joined.size() + size > joined_bytes_max) {
        // The other lane waits too: a control record must not be overtaken by data.
        if (!out.joined.empty()) return true;
        out.large = next;
      } else {
        const std::size_t at = out.joined.size();
        out.joined.resize(at + size);
        std::memcpy(out.joined.data() + at, next->bytes.data(), size);
      }
      out.lane_bytes.at(lane) += size;
      queued_bytes_ -= size;
      if (out.large != nullptr) {
        records.pop_front();
        return true;
      }
    }
  }
  writer_waits_ = out.joined.empty();
  return !writer_waits_;
}

void SendQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void SendQueue::abandon() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& lane : lanes_) lane.clear();
  queued_bytes_ = 0;
}

bool SendQueue::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::size_t SendQueue::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return queued_bytes_;
}

}  // namespace deltarelay::relay::net
