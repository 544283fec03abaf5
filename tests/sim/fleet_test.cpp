#include <doctest/doctest.h>

#include "tests/sim/fleet.hpp"

namespace deltarelay::sim {
using namespace std::chrono_literals;

namespace {
std::vector<HostSpec> tree() {  // the rig of the fault cases: R; A under R; B and C under A; D under B
  return {{"R", "", 0}, {"A", "R", 1}, {"B", "A", 2}, {"C", "A", 2}, {"D", "B", 3}};
}
std::vector<HostSpec> tree_of_empty_hosts() {
  std::vector<HostSpec> hosts = tree();
  for (HostSpec& host : hosts) host.empty = !host.parent.empty();
  return hosts;
}

bool idle(const Fleet& fleet) {
  for (const auto& [name, record] : fleet.node("R").records())
    if (record.state != relay::NodeState::idle) return false;
  return true;
}

bool commits(Fleet& fleet, Version version) {
  const bool all = fleet.run_until([&] { return fleet.all_at(version); }, 600s);
  if (!all) MESSAGE(fleet.violation(), "\n", fleet.describe());
  return all;
}

/// The root may die before it has decided: then the refit is over, and an operator publishes again.
void publish_until_committed(Fleet& fleet, std::size_t changed) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Version version = fleet.publish(changed);
    const auto ended = [&] {
      const relay::RefitSummary& refit = fleet.node("R").refit();
      const bool aborted = refit.phase == relay::RefitSummary::Phase::aborted || refit.version != version;
      return fleet.all_at(version) || (aborted && fleet.node("R").image().version != version);
    };
    if (!fleet.run_until(ended, 600s)) FAIL(fleet.violation(), "\n", fleet.describe());
    if (fleet.all_at(version)) return;
  }
  FAIL("20 refits in a row were aborted");
}
}  // namespace

TEST_SUITE("sim/fleet") {
  TEST_CASE("three refits in a row reach every host") {
    Fleet fleet(tree(), 200, 1);
    for (int i = 0; i < 3; ++i) {
      const Version version = fleet.publish(20);
      CHECK(fleet.run_until([&] { return fleet.all_at(version); }, 60s));
      CHECK(fleet.violation() == "");
    }
  }

  TEST_CASE("a grandchild applies early frames before the root has encoded the last, with a slow hop between") {
    Fleet fleet(tree(), 2000, 2);
    CHECK(fleet.run_until([&] { return fleet.node("R").records().size() == 5; }, 10s));
    fleet.delay("A", "B", 40ms);
    const Version version = fleet.publish(500);  // the root encodes one frame a millisecond
    REQUIRE(fleet.run_until([&] { return fleet.all_at(version); }, 60s));
    REQUIRE(fleet.end_produced(version).has_value());
    REQUIRE(fleet.first_applied("D", version).has_value());
    CHECK(*fleet.first_applied("D", version) < *fleet.end_produced(version));
  }

  TEST_CASE("a fleet of empty hosts fills from the root's checkpoint and then refits") {
    Fleet fleet(tree_of_empty_hosts(), 500, 3);
    CHECK(fleet.run_until([&] { return fleet.all_at(Version{1}); }, 60s));
    CHECK(fleet.violation() == "");
    const Version version = fleet.publish(50);
    CHECK(fleet.run_until([&] { return fleet.all_at(version); }, 60s));
    CHECK(fleet.violation() == "");
  }

  TEST_CASE("a host that crashes in the middle of a refit finishes it from its log") {
    Fleet fleet(tree(), 500, 4);
    const Version version = fleet.publish(200);
    REQUIRE(fleet.run_until([&] { return fleet.first_applied("B", version).has_value(); }, 10s));
    fleet.crash("B");
    CHECK(fleet.run_until([&] { return fleet.all_at(version); }, 60s));
    CHECK(fleet.violation() == "");
  }

  TEST_CASE("an aborted refit leaves every host at its base") {
    Fleet fleet(tree(), 500, 5);
    const Version version = fleet.publish(300);
    REQUIRE(fleet.run_until([&] { return fleet.first_applied("D", version).has_value(); }, 10s));
    fleet.abort(version);
    const auto back = [&] {
      for (const char* host : {"R", "A", "B", "C", "D"})
        if (!fleet.holds(host, Version{1}) || fleet.node(host).refit_node().phase() != relay::RefitNode::Phase::idle) return false;
      return fleet.node("R").refit().phase == relay::RefitSummary::Phase::aborted;
    };
    CHECK(fleet.run_until(back, 60s));
    CHECK(fleet.violation() == "");
  }

  TEST_CASE("a damaged block is repaired from the parent, and the refit commits") {
    Fleet fleet(tree(), 100, 6);
    REQUIRE(fleet.run_until([&] { return fleet.node("R").records().size() == 5; }, 10s));
    const Version version = fleet.publish(100);
    fleet.damage("D", 99);
    CHECK(fleet.run_until([&] { return fleet.all_at(version); }, 120s));
  }

  TEST_CASE("a root that crashes before its decision aborts the refit, and whoever was in it goes back by itself") {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      CAPTURE(seed);
      Fleet fleet(tree(), 300, seed);
      const Version version = fleet.publish(200);
      REQUIRE(fleet.run_until([&] { return fleet.first_applied("D", version).has_value(); }, 10s));
      fleet.crash("R");  // with the end of its log, which may be all of it
      CHECK(fleet.node("R").refit().phase == relay::RefitSummary::Phase::none);
      const auto back = [&] {
        return fleet.all_at(Version{1}) && idle(fleet) && fleet.node("D").records().at("D").receiving == Version{};
      };
      CHECK(fleet.run_until(back, 60s));
      CHECK(commits(fleet, fleet.publish(20)));
      CHECK(fleet.violation() == "");
    }
  }

  TEST_CASE("a root without its ledger gives no number twice that anybody has, and the fleet follows its image") {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      CAPTURE(seed);
      Fleet fleet(tree(), 150, seed);
      REQUIRE(commits(fleet, fleet.publish(20)));
      REQUIRE(commits(fleet, fleet.publish(20)));
      fleet.wipe_root();
      CHECK(fleet.run_until([&] { return fleet.all_at(Version{1}); }, 60s));
      CHECK(fleet.publish(20) > Version{3});
      CHECK(commits(fleet, fleet.node("R").refit().version));
      CHECK(fleet.violation() == "");
    }
  }

  TEST_CASE("a number that a root without its ledger does use twice is never taken for the other content") {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      CAPTURE(seed);
      Fleet fleet(tree(), 150, seed);
      const Version version = fleet.publish(50);
      // At any time of the refit: nodes may be in it, prepared or committed.
      (void)fleet.run_until([&, until = fleet.now() + seed * 5ms] { return fleet.now() >= until; }, 10s);
      for (const char* host : {"A", "B", "C", "D"}) fleet.lose(host);
      fleet.wipe_root();
      REQUIRE(fleet.run_until([&] { return fleet.node("R").image().version == Version{1}; }, 10s));
      CHECK(fleet.publish(50) == version);  // nobody is there to tell it
      for (const char* host : {"A", "B", "C", "D"}) fleet.crash(host);
      CHECK(commits(fleet, version));
      CHECK(fleet.violation() == "");
    }
  }

  TEST_CASE("crashes of the root too, and cut links: no host is ever at what it does not say") {
    for (std::uint64_t seed = 100; seed < 300; ++seed) {
      CAPTURE(seed);
      Fleet fleet(seed % 2 == 0 ? tree() : tree_of_empty_hosts(), 150, seed, Faults{0.002, 0.002, 0.002});
      for (int i = 0; i < 3; ++i) publish_until_committed(fleet, 60);
      CHECK(fleet.violation() == "");
    }
  }

  TEST_CASE("a root that loses its ledger under crashes and cut links: the fleet ends at its content") {
    for (std::uint64_t seed = 100; seed < 300; ++seed) {
      CAPTURE(seed);
      Fleet fleet(tree(), 150, seed, Faults{0.002, 0.002, 0.001});
      for (int i = 0; i < 2; ++i) publish_until_committed(fleet, 60);
      (void)fleet.publish(60);
      (void)fleet.run_until([&, until = fleet.now() + (seed % 60) * 5ms] { return fleet.now() >= until; }, 10s);
      if (seed % 3 == 0)
        for (const char* host : {"A", "B", "C", "D"}) fleet.lose(host);
      fleet.wipe_root();
      if (seed % 3 == 0) {
        (void)fleet.publish(60);  // a number that others may have used
        for (const char* host : {"A", "B", "C", "D"}) fleet.crash(host);
      }
      for (int i = 0; i < 2; ++i) publish_until_committed(fleet, 60);
      CHECK(fleet.violation() == "");
    }
  }

  TEST_CASE("crashes and cut links lose nothing, whatever the seed") {
    for (std::uint64_t seed = 100; seed < 400; ++seed) {
      CAPTURE(seed);
      Fleet fleet(seed % 2 == 0 ? tree() : tree_of_empty_hosts(), 150, seed, Faults{0.002, 0.002});
      if (seed % 2 != 0) REQUIRE(fleet.run_until([&] { return fleet.all_at(Version{1}); }, 600s));
      for (int i = 0; i < 3; ++i) {
        const Version version = fleet.publish(60);
        if (!fleet.run_until([&] { return fleet.all_at(version); }, 600s)) FAIL(fleet.violation(), "\n", fleet.describe());
      }
      CHECK(fleet.violation() == "");
    }
  }
}

}  // namespace deltarelay::sim
