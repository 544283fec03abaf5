// What is shown while nodes sync, take an aborted refit back, or are waited for: nobody is said to hold or to receive
// what it does not.
#include <algorithm>

#include "relay/admin/fleet_view.hpp"
#include "tests/relay/admin/sample_fleet.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::admin;
using namespace deltarelay::relay::admin::testing;

namespace {

const NodeRow& row_of(const NodesDocument& document, const std::string& name) {
  const auto found =
      std::find_if(document.nodes.begin(), document.nodes.end(), [&](const NodeRow& r) { return r.name == name; });
  REQUIRE(found != document.nodes.end());
  return *found;
}

/// As the core tells it: the aborted refit is still what the record names.
void undo(NodeRecord& record, std::uint64_t aborted, std::uint64_t done, std::uint64_t total) {
  record = receiving(record, aborted, 100, 100);
  record.state = NodeState::syncing;
  record.sync_blocks_done = done;
  record.sync_blocks_total = total;
}

/// v8 was aborted: hel-01 and hel-02 take it back, the others have done so.
FleetInput aborted_input(const topology::Plan& plan) {
  FleetInput input = sample_input(plan);
  input.refit.version = Version{8};
  input.refit.base = Version{7};
  input.refit.phase = RefitSummary::Phase::aborted;
  input.refit.why = "by the operator with uid 0";
  input.refit.opened = start_instant - 10s;
  input.refit.decided = input.refit.closed = start_instant - 1s;
  undo(input.records["hel-01"], 8, 30, 100);
  undo(input.records["hel-02"], 8, 10, 100);
  return input;
}

}  // namespace

TEST_SUITE("relay/admin/fleet_sync") {
  TEST_CASE("a node that takes an aborted refit back receives nothing, and does not count as at its version") {
    const auto plan = sample_plan();
    const FleetInput input = aborted_input(plan);
    const NodesDocument nodes = nodes_document(input);
    const NodeRow& back = row_of(nodes, "hel-01");
    CHECK(back.state == "SYNCING");
    CHECK(back.version == Version{7});
    CHECK(back.receiving_version == Version{});
    CHECK(back.undoing_version == Version{8});
    CHECK(row_of(nodes, "use-01").undoing_version == Version{});

    const StatusDocument status = status_document(input);
    CHECK(status.committed.nodes_committed == 4);
    CHECK_FALSE(status.in_flight);
    REQUIRE(status.syncing);
    CHECK(status.syncing->nodes == 2);
    CHECK(status.syncing->undoing == 2);
    CHECK(status.syncing->done_percent == doctest::Approx(20));
    CHECK(status.syncing->slowest.node == "hel-02");
    CHECK(status.syncing->slowest.percent == doctest::Approx(10));
  }

  TEST_CASE("a relay says of the refit that it takes back that it was aborted, not that it is in flight") {
    const auto plan = sample_plan();
    FleetInput input = aborted_input(plan);
    input.node = "hel-01";
    input.is_root = false;
    input.refit = RefitSummary{};
    CHECK_FALSE(status_document(input).in_flight);
    CHECK(nodes_document(input).in_flight_version == Version{});
    const RefitDocument refit = refit_document(input);
    REQUIRE(refit.refit);
    CHECK(refit.refit->version == Version{8});
    CHECK(refit.refit->phase == "CLOSED");
    CHECK(refit.result == "aborted");
  }

  TEST_CASE("hosts that are filled are counted, with the slowest, and not mistaken for others that take a refit back") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    CHECK_FALSE(status_document(input).syncing);
    NodeRecord& empty = input.records["hel-04"];
    empty.state = NodeState::syncing;
    empty.committed = Version{};
    empty.sync_blocks_total = 200;
    empty.sync_blocks_done = 50;
    const auto syncing = status_document(input).syncing;
    REQUIRE(syncing);
    CHECK(syncing->nodes == 1);
    CHECK(syncing->undoing == 0);
    CHECK(syncing->done_percent == doctest::Approx(25));
    CHECK(row_of(nodes_document(input), "hel-04").undoing_version == Version{});
  }

  TEST_CASE("the rate of a syncing node is that of its blocks, not of the log's bytes") {
    const auto plan = sample_plan();
    FleetInput input = aborted_input(plan);
    RateMeter rates;
    rates.observe(input.records, start_instant - 2s);
    undo(input.records["hel-01"], 8, 50, 100);
    input.records["hel-01"].received_bytes += 5;
    rates.observe(input.records, start_instant);
    input.rates = &rates;
    input.mean_block_bytes = 1e6;
    CHECK(row_of(nodes_document(input), "hel-01").rate_bytes_per_second == doctest::Approx(10e6));
    CHECK(row_of(nodes_document(input), "use-01").rate_bytes_per_second == 0);
  }

  TEST_CASE("a node that was lost a moment ago is not lost for as long as it was well before") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    RateMeter rates;
    rates.observe(input.records, start_instant - 75s);
    input.rates = &rates;
    CHECK(row_of(nodes_document(input), "hel-04").since == start_time - 75s);
    input.records["hel-04"].reachable = false;
    CHECK(row_of(nodes_document(input), "hel-04").since == start_time);
  }

  TEST_CASE("a refit that is being prepared names whom it waits for, lost ones first, and how long at most") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    for (auto& [name, record] : input.records) {
      record = receiving(record, 8, 100, 100);
      record.state = NodeState::prepared;
    }
    input.records["use-01"].state = NodeState::receiving;
    input.records["hel-04"].reachable = false;
    input.refit.version = Version{8};
    input.refit.phase = RefitSummary::Phase::preparing;
    input.refit.opened = start_instant - 3s;
    input.refit.left_out = {"use-01", "hel-04"};
    input.policy.prepare_timeout = 90s;
    const auto in_flight = status_document(input).in_flight;
    REQUIRE(in_flight);
    REQUIRE(in_flight->awaited);
    CHECK(in_flight->awaited->nodes == 2);
    CHECK(in_flight->awaited->timeout_seconds == 90);
    const auto& first = in_flight->awaited->first;
    REQUIRE(first.size() == 2);
    CHECK(first[0].node == "hel-04");
    CHECK(first[0].state == "unreachable");
    CHECK(first[1].node == "use-01");
    CHECK(first[1].state == "RECEIVING");

    input.refit.phase = RefitSummary::Phase::distributing;
    CHECK_FALSE(status_document(input).in_flight->awaited);
  }
}
