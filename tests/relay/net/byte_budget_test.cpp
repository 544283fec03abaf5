// Byte budgets: who waits, who is let in, and that nothing is lost when a waiter goes.
#include "relay/net/byte_budget.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <list>

#include "relay/net/task_group.hpp"

using namespace deltarelay::relay::net;
namespace asio = boost::asio;

namespace {

/// One thread, the test's: run() returns when nothing can go on.
struct Bench {
  struct Wish {
    std::size_t bytes;
    bool answered = false;
    std::optional<ByteHold> hold;
  };

  Wish& ask(ByteBudget& budget, TaskGroup& group, std::size_t bytes) {
    Wish& wish = wishes.emplace_back();
    wish.bytes = bytes;
    const bool spawned = group.spawn(io.get_executor(), [&budget, &wish]() -> asio::awaitable<void> {
      wish.hold = co_await budget.acquire(wish.bytes);
      wish.answered = true;
    });
    REQUIRE(spawned);
    run();
    return wish;
  }
  void run() {
    io.restart();
    io.poll();
  }

  asio::io_context io;
  std::list<Wish> wishes;
};

}  // namespace

TEST_SUITE("relay/net/byte_budget") {
  TEST_CASE("bytes are taken, given back, and the most that was held is known") {
    ByteBudget budget(100);
    TaskGroup group;
    Bench bench;
    auto& a = bench.ask(budget, group, 60);
    auto& b = bench.ask(budget, group, 40);
    CHECK((a.hold && b.hold));
    CHECK(a.hold->bytes() == 60);
    CHECK(budget.used_bytes() == 100);
    a.hold.reset();
    CHECK(budget.used_bytes() == 40);
    b.hold->release();
    b.hold->release();
    CHECK(budget.used_bytes() == 0);
    CHECK(budget.peak_bytes() == 100);
    CHECK(budget.bytes_max() == 100);
  }

  TEST_CASE("first come, first served: a large wish is not starved by small ones") {
    ByteBudget budget(100);
    TaskGroup group;
    Bench bench;
    auto& a = bench.ask(budget, group, 50);
    auto& large = bench.ask(budget, group, 80);
    auto& small = bench.ask(budget, group, 10);  // would fit, and waits all the same
    CHECK(a.hold.has_value());
    CHECK_FALSE(large.answered);
    CHECK_FALSE(small.answered);
    a.hold.reset();
    bench.run();
    CHECK(large.hold.has_value());
    CHECK(small.hold.has_value());
    CHECK(budget.used_bytes() == 90);
    bench.wishes.clear();
  }

  TEST_CASE("more than the whole budget is granted once nothing else is held") {
    ByteBudget budget(100);
    TaskGroup group;
    Bench bench;
    auto& a = bench.ask(budget, group, 1);
    auto& huge = bench.ask(budget, group, 500);
    auto& after = bench.ask(budget, group, 1);
    CHECK_FALSE(huge.answered);
    a.hold.reset();
    bench.run();
    CHECK(huge.hold.has_value());
    CHECK_FALSE(after.answered);
    huge.hold.reset();
    bench.run();
    CHECK(after.hold.has_value());
    bench.wishes.clear();
  }

  TEST_CASE("a stopped budget refuses those who wait and those who come") {
    ByteBudget budget(100);
    TaskGroup group;
    Bench bench;
    auto& a = bench.ask(budget, group, 100);
    auto& waiting = bench.ask(budget, group, 10);
    budget.stop();
    budget.stop();
    bench.run();
    auto& late = bench.ask(budget, group, 10);
    CHECK((waiting.answered && !waiting.hold));
    CHECK((late.answered && !late.hold));
    CHECK(a.hold.has_value());
    bench.wishes.clear();
    CHECK(budget.used_bytes() == 0);
  }

  TEST_CASE("who is cancelled while waiting keeps nothing, and those behind are served") {
    ByteBudget budget(100);
    TaskGroup group, other;
    Bench bench;
    auto& a = bench.ask(budget, group, 60);
    auto& cancelled = bench.ask(budget, other, 90);
    auto& behind = bench.ask(budget, group, 40);
    CHECK_FALSE(behind.answered);
    bool stopped = false;
    other.async_stop([&] { stopped = true; });
    bench.run();
    CHECK(stopped);
    CHECK_FALSE(cancelled.hold.has_value());
    bench.run();
    CHECK(behind.hold.has_value());
    CHECK(budget.used_bytes() == 100);
    CHECK(a.hold.has_value());
    bench.wishes.clear();
  }
}
