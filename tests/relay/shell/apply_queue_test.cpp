// The apply queue: what waits in it counts against the link's budget, so a parent cannot fill the memory.
#include "relay/shell/apply_queue.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <future>

#include "relay/net/task_group.hpp"
#include "tests/relay/shell/host_bench.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::testing;

namespace {

/// `bytes` of the budget, as a link takes them before it reads.
std::shared_ptr<net::ByteHold> take(net::ByteBudget& budget, std::size_t bytes) {
  boost::asio::io_context io;
  net::TaskGroup group;
  std::shared_ptr<net::ByteHold> out;
  REQUIRE(group.spawn(io.get_executor(), [&]() -> boost::asio::awaitable<void> {
    auto hold = co_await budget.acquire(bytes);
    if (hold) out = std::make_shared<net::ByteHold>(std::move(*hold));
  }));
  io.run();
  REQUIRE(out);
  return out;
}

}  // namespace

TEST_SUITE("relay/shell/apply_queue") {
  TEST_CASE("blocks of a sync keep their share of the budget until they are applied, and no longer") {
    Mesh mesh;
    auto host = mesh.open("relay");
    net::ByteBudget budget(1000);
    SUBCASE("not yet applied") {
      {
        ApplyQueue queue(
            *host, 0, [](const Event&) {}, [](const std::function<void()>& work) { work(); });
        for (int i = 0; i < 3; ++i) queue.apply(ApplySyncBlocks{}, take(budget, 300));
        CHECK(budget.used_bytes() == 900);
        queue.stop();
      }
      CHECK(budget.used_bytes() == 0);
    }
    SUBCASE("applied") {
      std::promise<void> applied;
      ApplyQueue queue(
          *host, 1,
          [&](const Event& event) {
            if (std::holds_alternative<SyncBlocksApplied>(event)) applied.set_value();
          },
          [](const std::function<void()>& work) { work(); });
      queue.apply(ApplySyncBlocks{}, take(budget, 300));
      applied.get_future().wait();
      CHECK(budget.used_bytes() == 0);
      queue.stop();
    }
  }
}
