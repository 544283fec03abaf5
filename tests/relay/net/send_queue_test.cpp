// The order in which a link sends, and what it holds at the most.
#include "relay/net/send_queue.hpp"

#include <doctest/doctest.h>

using namespace deltarelay;
using namespace deltarelay::relay::net;

namespace {

codec::RecordPtr record(std::size_t bytes, unsigned char fill) {
  auto out = std::make_shared<codec::Record>();
  out->bytes.assign(bytes, static_cast<std::byte>(fill));
  return out;
}

std::string text_of(const SendQueue::Batch& batch) {
  std::string out;
  for (const std::byte b : batch.bytes()) out += static_cast<char>(b);
  return out;
}

}  // namespace

TEST_SUITE("relay/net/send_queue") {
  TEST_CASE("small records are joined, control first, each lane in order") {
    SendQueue queue(1000);
    CHECK(queue.put(record(2, 'a'), Lane::data) == SendQueue::Put::queued);
    CHECK(queue.put(record(3, 'b'), Lane::data) == SendQueue::Put::queued);
    CHECK(queue.put(record(1, 'c'), Lane::control) == SendQueue::Put::queued);
    SendQueue::Batch batch;
    REQUIRE(queue.take(batch));
    CHECK(text_of(batch) == "caabbb");
    CHECK(batch.lane_bytes == std::array<std::uint64_t, 2>{1, 5});
    CHECK(queue.queued_bytes() == 0);
  }

  TEST_CASE("a large record goes alone and from its own memory") {
    SendQueue queue(codec::mib);
    const auto large = record(100'000, 'L');
    CHECK(queue.put(record(1, 'a'), Lane::data) == SendQueue::Put::queued);
    CHECK(queue.put(large, Lane::data) == SendQueue::Put::queued);
    CHECK(queue.put(record(1, 'z'), Lane::data) == SendQueue::Put::queued);
    SendQueue::Batch batch;
    REQUIRE(queue.take(batch));
    CHECK(text_of(batch) == "a");
    // A control record that comes meanwhile overtakes the large one.
    CHECK(queue.put(record(1, 'c'), Lane::control) == SendQueue::Put::queued);
    REQUIRE(queue.take(batch));
    CHECK(text_of(batch) == "c");
    REQUIRE(queue.take(batch));
    CHECK(batch.bytes().data() == large->bytes.data());
    CHECK(batch.lane_bytes == std::array<std::uint64_t, 2>{0, 100'000});
    REQUIRE(queue.take(batch));
    CHECK(text_of(batch) == "z");
    CHECK_FALSE(queue.take(batch));
  }

  TEST_CASE("the writer is woken once after it found nothing") {
    SendQueue queue(1000);
    SendQueue::Batch batch;
    CHECK_FALSE(queue.take(batch));
    CHECK(queue.put(record(1, 'a'), Lane::data) == SendQueue::Put::queued_wake);
    CHECK(queue.put(record(1, 'b'), Lane::data) == SendQueue::Put::queued);
  }

  TEST_CASE("the bound holds over both lanes; one record of any size is let in") {
    SendQueue queue(1000);
    CHECK(queue.put(record(5000, 'a'), Lane::data) == SendQueue::Put::queued);
    SendQueue::Batch batch;
    REQUIRE(queue.take(batch));
    CHECK(queue.put(record(600, 'b'), Lane::data) == SendQueue::Put::queued);
    CHECK(queue.put(record(400, 'c'), Lane::control) == SendQueue::Put::queued);
    CHECK(queue.queued_bytes() == 1000);
    CHECK(queue.put(record(1, 'd'), Lane::control) == SendQueue::Put::full);
    CHECK(queue.put(record(1, 'e'), Lane::control) == SendQueue::Put::ignored);
  }

  TEST_CASE("closing keeps what is queued, abandoning drops it") {
    SendQueue queue(1000);
    SendQueue::Batch batch;
    CHECK(queue.put(record(1, 'a'), Lane::data) == SendQueue::Put::queued);
    queue.close();
    CHECK(queue.put(record(1, 'b'), Lane::data) == SendQueue::Put::ignored);
    REQUIRE(queue.take(batch));
    CHECK(text_of(batch) == "a");
    CHECK_FALSE(queue.take(batch));

    SendQueue dropped(1000);
    const auto kept = record(1, 'a');
    CHECK(dropped.put(kept, Lane::data) == SendQueue::Put::queued);
    dropped.abandon();
    CHECK(kept.use_count() == 1);
    CHECK(dropped.is_closed());
    CHECK_FALSE(dropped.take(batch));
  }
}
