// A counter and a queue of waiters under one mutex. A waiter is a timer that never expires, on its own executor: it is
// woken by posting a cancel there, and then looks at what was decided under the mutex (a cancel may also come late).
#include "relay/net/byte_budget.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cassert>
#include <deque>
#include <mutex>

#include "relay/net/deadline.hpp"

namespace deltarelay::relay::net {
namespace asio = boost::asio;

struct ByteBudget::Waiter {
  enum class Fate { waiting, granted, refused };
  Waiter(asio::any_io_executor executor, std::size_t count)
      : timer(executor, std::chrono::steady_clock::time_point::max()), bytes(count) {}

  asio::steady_timer timer;
  std::size_t bytes;
  Fate fate = Fate::waiting;  // under State::mutex
};

struct ByteBudget::State {
  using WaiterPtr = std::shared_ptr<Waiter>;

  mutable std::mutex mutex;
  const std::size_t max;
  std::size_t used = 0;
  std::size_t peak = 0;
  bool stopped = false;
  std::deque<WaiterPtr> waiters;

  explicit State(std::size_t bytes_max) : max(bytes_max) {}

  [[nodiscard]] bool fits(std::size_t bytes) const noexcept { return used == 0 || (used < max && bytes <= max - used); }
  void take(std::size_t bytes) noexcept {
    used += bytes;
    peak = std::max(peak, used);
  }
  static void decide(const WaiterPtr& waiter, Waiter::Fate fate) {
    waiter->fate = fate;
    asio::post(waiter->timer.get_executor(), [waiter] { waiter->timer.cancel(); });
  }
  void grant_in_order() {
    while (!waiters.empty() && fits(waiters.front()->bytes)) {
      take(waiters.front()->bytes);
      decide(waiters.front(), Waiter::Fate::granted);
      waiters.pop_front();
    }
  }
};

/// What a waiting coroutine leaves behind when it is destroyed or cancelled: nothing.
class ByteBudget::Ticket {
 public:
  Ticket(State& state, asio::any_io_executor executor, std::size_t bytes)
      : state_(state), waiter_(std::make_shared<Waiter>(std::move(executor), bytes)) {
    const std::lock_guard lock(state_.mutex);
    if (state_.stopped) {
      waiter_->fate = Waiter::Fate::refused;
    } else if (state_.waiters.empty() && state_.fits(bytes)) {
      state_.take(bytes);
      waiter_->fate = Waiter::Fate::granted;
    } else {
      state_.waiters.push_back(waiter_);
    }
  }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    const std::lock_guard lock(state_.mutex);
    if (waiter_->fate == Waiter::Fate::granted) state_.used -= waiter_->bytes;
    std::erase(state_.waiters, waiter_);
    state_.grant_in_order();
  }

  [[nodiscard]] bool is_waiting() const {
    const std::lock_guard lock(state_.mutex);
    return waiter_->fate == Waiter::Fate::waiting;
  }
  /// True once, if the bytes are ours: from here on the caller gives them back.
  [[nodiscard]] bool redeem() {
    const std::lock_guard lock(state_.mutex);
    const bool granted = waiter_->fate == Waiter::Fate::granted;
    waiter_->fate = Waiter::Fate::refused;
    return granted;
  }
  [[nodiscard]] asio::steady_timer& timer() noexcept { return waiter_->timer; }

 private:
  State& state_;
  std::shared_ptr<Waiter> waiter_;
};

void ByteHold::release() noexcept {
  if (budget_ != nullptr) std::exchange(budget_, nullptr)->give_back(std::exchange(bytes_, 0));
}

ByteBudget::ByteBudget(std::size_t bytes_max) : state_(std::make_unique<State>(bytes_max)) {
  assert(bytes_max > 0);
}
ByteBudget::~ByteBudget() {
  assert(state_->waiters.empty() && state_->used == 0);
}

asio::awaitable<std::optional<ByteHold>> ByteBudget::acquire(std::size_t bytes) {
  const auto executor = co_await asio::this_coro::executor;
  Ticket ticket(*state_, executor, bytes);
  while (ticket.is_waiting()) {
    co_await ticket.timer().async_wait(io);
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) co_return std::nullopt;
  }
  if (!ticket.redeem()) co_return std::nullopt;
  co_return ByteHold(*this, bytes);
}

void ByteBudget::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stopped = true;
  for (const auto& waiter : state_->waiters) State::decide(waiter, Waiter::Fate::refused);
  state_->waiters.clear();
}

std::size_t ByteBudget::used_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->used;
}
std::size_t ByteBudget::peak_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->peak;
}
std::size_t ByteBudget::bytes_max() const noexcept {
  return state_->max;
}

void ByteBudget::give_back(std::size_t bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  assert(state_->used >= bytes);
  state_->used -= bytes;
  state_->grant_in_order();
}

}  // namespace deltarelay::relay::net
