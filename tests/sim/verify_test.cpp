// `relayctl verify` over whole fleets: damage is found where it is, faults in the middle end the round all the same.
#include <doctest/doctest.h>

#include <map>

#include "tests/sim/fleet.hpp"

namespace deltarelay::sim {
using namespace std::chrono_literals;
using relay::VerifyState;

namespace {

// R; A under R; B and C under A; D under B
std::vector<HostSpec> tree() {
  return {{"R", "", 0}, {"A", "R", 1}, {"B", "A", 2}, {"C", "A", 2}, {"D", "B", 3}};
}

using States = std::map<std::string, VerifyState>;
States states_at(const Fleet& fleet, const std::string& host) {
  States states;
  for (const auto& [name, row] : fleet.node(host).verify().rows()) states[name] = row.result.state;
  return states;
}
States all_ok() {
  return {{"R", VerifyState::ok},
          {"A", VerifyState::ok},
          {"B", VerifyState::ok},
          {"C", VerifyState::ok},
          {"D", VerifyState::ok}};
}

void settle(Fleet& fleet) {
  const auto settled = [&] {
    const auto records = fleet.node("R").records();
    return records.size() == 5 && records.count("D") != 0 && records.at("D").committed == Version{1};
  };
  REQUIRE(fleet.run_until(settled, 10s));
}

/// Asks R, and runs until it waits for nobody.
States verified(Fleet& fleet, relay::Duration limit) {
  fleet.verify("R");
  REQUIRE_FALSE(fleet.node("R").verify_over());
  CHECK(fleet.run_until([&] { return fleet.node("R").verify().closed().has_value(); }, limit));
  return states_at(fleet, "R");
}

}  // namespace

TEST_SUITE("sim/verify") {
  TEST_CASE("every host is proved, and a relay that is asked speaks for its subtree") {
    Fleet fleet(tree(), 50, 1);
    settle(fleet);
    CHECK(verified(fleet, 5s) == all_ok());
    fleet.verify("B");
    CHECK(fleet.run_until([&] { return fleet.node("B").verify().closed().has_value(); }, 5s));
    CHECK(states_at(fleet, "B") == States{{"B", VerifyState::ok}, {"D", VerifyState::ok}});
  }

  TEST_CASE("one damaged block is named, and its host alone") {
    Fleet fleet(tree(), 50, 2);
    settle(fleet);
    fleet.damage_at_rest("D", 33);
    States expected = all_ok();
    expected["D"] = VerifyState::damaged;
    CHECK(verified(fleet, 5s) == expected);
    const relay::VerifyResult& found = fleet.node("R").verify().rows().at("D").result;
    REQUIRE(found.damaged.size() == 1);
    CHECK(found.damaged[0].block == 33);
  }

  TEST_CASE("a host that crashes in the middle and comes back is asked again") {
    Fleet fleet(tree(), 50, 3);
    settle(fleet);
    fleet.verify("R");
    REQUIRE(fleet.run_until([&] { return states_at(fleet, "R").at("B") == VerifyState::reading; }, 5s));
    fleet.crash("B");
    CHECK(fleet.run_until([&] { return fleet.node("R").verify().closed().has_value(); }, 20s));
    CHECK(states_at(fleet, "R") == all_ok());
    CHECK((fleet.node("R").verify().rows().at("B").result.serial / relay::first_of_boot(1)) == 2);  // of its second life
    CHECK(fleet.violation() == "");
  }

  TEST_CASE("a host that dies in the middle is not waited for, and those below it answer through another parent") {
    Fleet fleet(tree(), 50, 4);
    settle(fleet);
    fleet.verify("R");
    REQUIRE(fleet.run_until([&] { return states_at(fleet, "R").at("B") == VerifyState::reading; }, 5s));
    const relay::Instant died = fleet.now();
    fleet.lose("B");
    CHECK(fleet.run_until([&] { return fleet.node("R").verify().closed().has_value(); }, 20s));
    CHECK(fleet.now() - died < 10s);
    States expected = all_ok();
    expected["B"] = VerifyState::reading;  // its last words; who reads them sees that the round is closed
    CHECK(states_at(fleet, "R") == expected);
    // The next round does not wait for it at all.
    expected.erase("B");
    const relay::Instant asked = fleet.now();
    CHECK(verified(fleet, 20s) == expected);
    CHECK(fleet.now() - asked < 2s);
  }

  TEST_CASE("a refit under way is never taken for damage") {
    Fleet fleet(tree(), 200, 5);
    settle(fleet);
    const Version version = fleet.publish(100);
    REQUIRE(fleet.run_until([&] { return fleet.first_applied("D", version).has_value(); }, 10s));
    CHECK(verified(fleet, 20s) == all_ok());
    for (const auto& [name, row] : fleet.node("R").verify().rows()) CHECK(row.result.version == version);
  }

  TEST_CASE("a refit that begins under the readings is never taken for damage, whenever it begins") {
    for (int step = 0; step < 12; ++step) {
      CAPTURE(step);
      Fleet fleet(tree(), 200, 6);
      settle(fleet);
      fleet.verify("R");
      const relay::Instant from = fleet.now();
      (void)fleet.run_until([&] { return fleet.now() - from >= step * 5ms; }, 10s);
      const Version version = fleet.publish(100);
      CHECK(fleet.run_until([&] { return fleet.node("R").verify().closed().has_value(); }, 20s));
      CHECK(states_at(fleet, "R") == all_ok());
      CHECK(fleet.run_until([&] { return fleet.all_at(version); }, 60s));
    }
  }

  TEST_CASE("cut links and crashes: every round ends, and an intact image is never called damaged") {
    for (std::uint64_t seed = 500; seed < 600; ++seed) {
      CAPTURE(seed);
      Fleet fleet(tree(), 50, seed, Faults{0.01, 0.01});
      settle(fleet);
      for (int round = 0; round < 3; ++round)
        for (const auto& [name, state] : verified(fleet, 120s)) {
          CAPTURE(name);
          CHECK(state != VerifyState::damaged);
        }
      CHECK(fleet.violation() == "");
    }
  }
}

}  // namespace deltarelay::sim
