// How many received bytes may be in memory at once, over all links of a node.
//
// A link asks before it reads a payload and does not read until it has the bytes: not reading is the only brake on a
// parent. First come, first served, so a large record is not starved by small ones. Thread-safe; waiters may be on
// different strands. The budget must outlive its holds and waiters.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace deltarelay::relay::net {

class ByteBudget;

/// Bytes taken from a budget, given back when this goes. Move-only.
class ByteHold {
 public:
  ByteHold() = default;
  ByteHold(ByteHold&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteHold& operator=(ByteHold&& other) noexcept {
    if (this != &other) {
      release();
      budget_ = std::exchange(other.budget_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  ~ByteHold() { release(); }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  void release() noexcept;

 private:
  friend class ByteBudget;
  ByteHold(ByteBudget& budget, std::size_t bytes) noexcept : budget_(&budget), bytes_(bytes) {}

  ByteBudget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

class ByteBudget {
 public:
  explicit ByteBudget(std::size_t bytes_max);
  ~ByteBudget();
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  /// Waits until `bytes` are free and takes them; nullopt when the budget was stopped or the wait was cancelled.
  /// More than the whole budget is granted once nothing else is held, so that a record of the largest size still passes.
  [[nodiscard]] boost::asio::awaitable<std::optional<ByteHold>> acquire(std::size_t bytes);

  /// Every waiter, now and later, gets nullopt. Idempotent.
  void stop();

  [[nodiscard]] std::size_t used_bytes() const;
  /// The most that was ever held at once: a metric.
  [[nodiscard]] std::size_t peak_bytes() const;
  [[nodiscard]] std::size_t bytes_max() const noexcept;

 private:
  friend class ByteHold;
  struct State;
  struct Waiter;
  class Ticket;
  void give_back(std::size_t bytes) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace deltarelay::relay::net
