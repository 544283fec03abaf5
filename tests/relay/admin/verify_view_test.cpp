// A round of verifying as operators see it: every node of the plan is a row, whatever it has said.
#include "relay/admin/verify_view.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/relay/admin/sample_fleet.hpp"

namespace deltarelay::relay::admin {
using namespace testing;
namespace {

struct Scene {
  topology::Plan plan = sample_plan();
  Reports reports{100};
  VerifyRound round{"trn-00", 1};
  FleetInput input;
  Actions out;

  Scene() {
    input.node = "trn-00";
    input.is_root = true;
    input.plan = &plan;
    input.now = start_instant + 10s;
    input.at = start_time + 10s;
    (void)reports.set_self(sample_record("trn-00", "", 7));
    (void)reports.merge({sample_record("use-01", "trn-00", 7), sample_record("hel-01", "use-01", 7)});
    NodeRecord gone = sample_record("hel-02", "hel-01", 7);
    gone.reachable = false;
    gone.reason_text = "link to hel-01 lost: reset";
    (void)reports.merge({gone});
    round.begin(VerifyOrder{18446744073709551615u, true}, reports, start_instant, out);
    input.records = reports.all();
  }
  void says(const std::string& node, VerifyState state, std::vector<DamagedBlock> damaged = {}) {
    VerifyResult result;
    result.node = node;
    result.serial = 1;
    result.state = state;
    result.damaged_blocks = damaged.size();
    result.damaged = std::move(damaged);
    result.milliseconds = 1500;
    round.merge(VerifyResults{round.order().round, {result}}, reports, start_instant);
  }
};

VerifyRow row_of(const VerifyDocument& document, const std::string& node) {
  const auto found =
      std::find_if(document.nodes.begin(), document.nodes.end(), [&](const auto& r) { return r.node == node; });
  REQUIRE(found != document.nodes.end());
  return *found;
}

}  // namespace

TEST_SUITE("relay/admin/verify_view") {
  TEST_CASE("while a round runs: who has answered, who reads, and who cannot be reached") {
    Scene scene;
    scene.says("use-01", VerifyState::damaged, {{"model.norm", 3}});
    const VerifyDocument document = verify_document(scene.input, scene.round, false);
    CHECK(document.round == "18446744073709551615");
    CHECK(document.began == start_time);
    CHECK(document.deep);
    CHECK_FALSE(document.done);
    CHECK(document.nodes.size() == 6);  // every node of the plan
    const VerifyRow damaged = row_of(document, "use-01");
    CHECK(damaged.result == "damaged");
    CHECK(damaged.state == "DONE");
    CHECK(damaged.seconds == doctest::Approx(1.5));
    REQUIRE(damaged.damaged.size() == 1);
    CHECK(damaged.damaged[0].tensor == "model.norm");
    CHECK(damaged.damaged[0].block == 3);
    CHECK(row_of(document, "hel-01").state == "ASKED");
    CHECK(row_of(document, "hel-01").result == "");
    CHECK(row_of(document, "trn-00").state == "WAITING");
    CHECK(row_of(document, "hel-02").state == "unreachable");
    CHECK(row_of(document, "hel-02").result == "unreachable");
    CHECK(row_of(document, "hel-02").text == "link to hel-01 lost: reset");
    CHECK(row_of(document, "hel-04").text == "not heard from since relayd started on trn-00");
  }

  TEST_CASE("when it is over, no row is without a verdict, and silence has its reason") {
    Scene scene;
    scene.says("use-01", VerifyState::reading);
    const VerifyDocument document = verify_document(scene.input, scene.round, true);
    CHECK(document.done);
    for (const VerifyRow& row : document.nodes) CHECK(row.result == "unreachable");
    CHECK(row_of(document, "use-01").text == "it fell silent before it had finished");
    CHECK(row_of(document, "hel-01").text.find("older release") != std::string::npos);
  }

  TEST_CASE("what each last word is called") {
    for (const auto& [state, word] : {std::pair(VerifyState::ok, "ok"), std::pair(VerifyState::failed, "failed"),
                                      std::pair(VerifyState::busy, "busy")}) {
      Scene scene;
      scene.says("use-01", state);
      CHECK(row_of(verify_document(scene.input, scene.round, true), "use-01").result == word);
    }
  }
}

}  // namespace deltarelay::relay::admin
