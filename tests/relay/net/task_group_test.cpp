// Task groups: every task ends before its group does.
#include "relay/net/task_group.hpp"

#include <doctest/doctest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "relay/net/deadline.hpp"

using namespace deltarelay::relay::net;
namespace asio = boost::asio;

namespace {

/// Ends only when it is cancelled.
asio::awaitable<void> wait_for_ever() {
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::steady_clock::time_point::max());
  co_await timer.async_wait(asio::use_awaitable);
}

void run(asio::io_context& context) {
  context.restart();
  context.poll();
}

}  // namespace

TEST_SUITE("relay/net/task_group") {
  TEST_CASE("tasks run on their executor, are counted, and let go of what they captured") {
    asio::io_context context;
    TaskGroup group;
    auto captured = std::make_shared<int>(0);
    REQUIRE(group.spawn(context.get_executor(), [captured]() -> asio::awaitable<void> {
      ++*captured;
      co_return;
    }));
    CHECK(group.size() == 1);
    CHECK(*captured == 0);
    run(context);
    CHECK(*captured == 1);
    CHECK(group.size() == 0);
    CHECK(captured.use_count() == 1);
  }

  TEST_CASE("stopping cancels the tasks, waits for them, and refuses new ones") {
    asio::io_context context;
    std::vector<std::string> reports;
    TaskGroup group([&](const std::string& text) { reports.push_back(text); });
    for (int i = 0; i < 3; ++i) REQUIRE(group.spawn(context.get_executor(), wait_for_ever));
    run(context);
    CHECK(group.size() == 3);
    int done = 0;
    group.async_stop([&] { ++done; });
    group.async_stop([&] { ++done; });
    CHECK(done == 0);
    CHECK(group.is_stopping());
    CHECK_FALSE(group.spawn(context.get_executor(), wait_for_ever));
    run(context);
    CHECK(done == 2);
    CHECK(group.size() == 0);
    group.async_stop([&] { ++done; });
    CHECK(done == 3);
    CHECK(reports.empty());  // "operation aborted" of a cancelled task is no news
    CHECK(group.escaped_exceptions() == 0);
  }

  TEST_CASE("a task may clean up after it was cancelled, and is waited for") {
    asio::io_context context;
    TaskGroup group;
    bool cleaned = false, done = false;
    REQUIRE(group.spawn(context.get_executor(), [&cleaned]() -> asio::awaitable<void> {
      co_await asio::this_coro::throw_if_cancelled(false);
      asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::steady_clock::time_point::max());
      co_await timer.async_wait(io);
      co_await asio::this_coro::reset_cancellation_state();
      timer.expires_after(std::chrono::milliseconds(0));
      co_await timer.async_wait(io);
      cleaned = true;
    }));
    run(context);
    group.async_stop([&] {
      CHECK(cleaned);
      done = true;
    });
    context.restart();
    context.run();
    CHECK(done);
  }

  TEST_CASE("an exception that escapes is counted and reported with its text; the others run on") {
    asio::io_context context;
    std::vector<std::string> reports;
    TaskGroup group([&](const std::string& text) { reports.push_back(text); });
    REQUIRE(group.spawn(context.get_executor(), []() -> asio::awaitable<void> {
      throw std::runtime_error("boom");
      co_return;
    }));
    REQUIRE(group.spawn(context.get_executor(), wait_for_ever));
    run(context);
    CHECK(reports == std::vector<std::string>{"boom"});
    CHECK(group.escaped_exceptions() == 1);
    CHECK(group.size() == 1);
    group.async_stop([] {});
    run(context);
    CHECK(group.size() == 0);
  }

  TEST_CASE("a group without tasks is stopped at once") {
    TaskGroup group;
    bool done = false;
    group.async_stop([&] { done = true; });
    CHECK(done);
    group.stop();
  }

  TEST_CASE("stop() waits while other threads run the tasks") {
    asio::io_context context;
    auto work = asio::make_work_guard(context);
    std::thread first([&] { context.run(); }), second([&] { context.run(); });
    {
      TaskGroup group;
      for (int i = 0; i < 100; ++i) REQUIRE(group.spawn(asio::make_strand(context), wait_for_ever));
      group.stop();
      CHECK(group.size() == 0);
    }
    work.reset();
    first.join();
    second.join();
  }
}
