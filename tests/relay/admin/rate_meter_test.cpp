// Rates and ages of states, second by second.
#include "relay/admin/rate_meter.hpp"

#include "tests/relay/admin/sample_fleet.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::admin;
using namespace deltarelay::relay::admin::testing;

namespace {

std::map<std::string, NodeRecord> one(const NodeRecord& record) {
  return {{record.name, record}};
}
NodeRecord received(std::uint64_t version, std::uint64_t frames) {
  return receiving(sample_record("a", "root", 7), version, frames, 0);
}

}  // namespace

TEST_SUITE("relay/admin/rate_meter") {
  TEST_CASE("the rate is taken over the window, and follows a change within it") {
    RateMeter meter;
    CHECK(meter.bytes_per_second(received(8, 0)) == 0);
    meter.observe(one(received(8, 0)), start_instant);
    CHECK(meter.bytes_per_second(received(8, 0)) == 0);
    for (std::uint64_t s = 1; s <= 10; ++s)
      meter.observe(one(received(8, 100 * s)), start_instant + std::chrono::seconds(s));
    CHECK(meter.bytes_per_second(received(8, 1000)) == doctest::Approx(100e6));
    for (std::uint64_t s = 11; s <= 16; ++s)
      meter.observe(one(received(8, 1000)), start_instant + std::chrono::seconds(s));
    CHECK(meter.bytes_per_second(received(8, 1000)) == 0);
  }

  TEST_CASE("the next refit, a counter that falls and a node that went away do not make rates") {
    RateMeter meter;
    meter.observe(one(received(8, 900)), start_instant);
    meter.observe(one(received(9, 950)), start_instant + 1s);
    CHECK(meter.bytes_per_second(received(9, 950)) == 0);
    meter.observe(one(received(9, 10)), start_instant + 2s);
    CHECK(meter.bytes_per_second(received(9, 10)) == 0);
    meter.observe(one(received(9, 20)), start_instant + 3s);
    CHECK(meter.bytes_per_second(received(9, 20)) == doctest::Approx(10e6));
    CHECK(meter.bytes_per_second(received(10, 20)) == 0);  // changed since the last sample
    CHECK(meter.bytes_per_second(sample_record("a", "root", 9)) == 0);
    NodeRecord lost = received(9, 20);
    lost.reachable = false;
    meter.observe(one(lost), start_instant + 4s);
    CHECK(meter.bytes_per_second(lost) == 0);
    meter.observe({}, start_instant + 5s);
    CHECK_FALSE(meter.since(lost));
  }

  TEST_CASE("a state lasts from when it was first seen until it changes") {
    RateMeter meter;
    meter.observe(one(sample_record("a", "root", 7)), start_instant);
    meter.observe(one(sample_record("a", "root", 7)), start_instant + 1s);
    CHECK(meter.since(sample_record("a", "root", 8)) == start_instant);
    meter.observe(one(received(8, 1)), start_instant + 2s);
    meter.observe(one(received(8, 2)), start_instant + 3s);
    CHECK(meter.since(received(8, 2)) == start_instant + 2s);
    NodeRecord lost = received(8, 2);
    lost.reachable = false;
    CHECK_FALSE(meter.since(lost));  // lost after the last sample: how long it was received is not how long it is lost
    meter.observe(one(lost), start_instant + 4s);
    CHECK(meter.since(lost) == start_instant + 4s);
    CHECK_FALSE(meter.since(sample_record("b", "root", 7)));
  }

  TEST_CASE("a sync has a rate of its own, and the next sync begins anew") {
    RateMeter meter;
    NodeRecord syncing = sample_record("a", "root", 0);
    syncing.state = NodeState::syncing;
    syncing.sync_blocks_total = 100;
    for (std::uint64_t s = 0; s <= 4; ++s) {
      syncing.sync_blocks_done = 20 * s;
      meter.observe(one(syncing), start_instant + std::chrono::seconds(s));
    }
    CHECK(meter.sync_blocks_per_second(syncing) == doctest::Approx(20));
    CHECK(meter.bytes_per_second(syncing) == 0);
    syncing.sync_blocks_total = 90;
    syncing.sync_blocks_done = 0;
    CHECK(meter.sync_blocks_per_second(syncing) == 0);
    meter.observe(one(syncing), start_instant + 5s);
    CHECK(meter.sync_blocks_per_second(syncing) == 0);
  }
}
