// What a link still has to send: two lanes, control before data, under one bound. Thread-safe; no I/O.
//
// Small records are joined into one TLS record's worth of bytes; a large one goes out from its own memory.
// Invariant: a lane's records leave in the order in which they were put.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "codec/record.hpp"
#include "relay/net/link.hpp"

namespace deltarelay::relay::net {

class SendQueue {
 public:
  explicit SendQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  enum class Put : std::uint8_t {
    queued,
    queued_wake,  ///< queued, and the writer waits: wake it
    full,         ///< not queued, and everything later is ignored
    ignored,      ///< the queue is closed
  };
  [[nodiscard]] Put put(codec::RecordPtr record, Lane lane);

  /// One piece of what is to be written next; reused, so that its buffer is allocated once.
  struct Batch {
    std::vector<std::byte> joined;  ///< small records, one after another
    codec::RecordPtr large;         ///< or one large one
    std::array<std::uint64_t, 2> lane_bytes{};

    [[nodiscard]] codec::Bytes bytes() const noexcept {
      return large != nullptr ? codec::Bytes(large->bytes) : codec::Bytes(joined);
    }
  };
  /// False when nothing is there; then the next put() asks to be woken for.
  [[nodiscard]] bool take(Batch& out);

  /// What is queued stays; what is put from now on is ignored.
  void close();
  /// Closes, and what is queued is dropped.
  void abandon();
  [[nodiscard]] bool is_closed() const;
  [[nodiscard]] std::size_t queued_bytes() const;

 private:
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  std::array<std::deque<codec::RecordPtr>, 2> lanes_;
  std::size_t queued_bytes_ = 0;
  bool closed_ = false;
  bool writer_waits_ = false;
};

}  // namespace deltarelay::relay::net
