// The views under golden files and, beside them, what the golden files do not reach.
#include "relay/admin/fleet_view.hpp"

#include <algorithm>

#include "tests/relay/admin/golden.hpp"
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

std::vector<std::string> codes_of(const Health& health) {
  std::vector<std::string> codes;
  for (const Check& check : health.checks)
    codes.push_back(check.node.empty() ? check.code : check.code + ' ' + check.node);
  return codes;
}

using Codes = std::vector<std::string>;

/// The plan's digest is the planner's business; the golden files are not to change with it.
std::string status_text(const FleetInput& input) {
  StatusDocument document = status_document(input);
  CHECK(document.plan.digest == input.plan->digest());
  document.plan.digest = "a91f3c2e00000000";
  return indented_json(to_json(document));
}

/// v8 on its way, 12 s in: hel-02 lost 5 s ago, hel-04 out of reach with it, hel-03 failed.
struct Disturbed {
  topology::Plan plan = sample_plan();
  History history;
  RateMeter rates;
  FleetInput input = sample_input(plan);

  Disturbed() {
    VersionRow row;
    row.version = Version{7};
    row.at = start_time - 131s;
    row.result = "committed";
    history.put(row);
    auto& records = input.records;
    records["trn-00"] = receiving(records["trn-00"], 8, 400, 0);
    records["use-01"] = receiving(records["use-01"], 8, 300, 250);
    records["hel-01"] = receiving(records["hel-01"], 8, 250, 200);
    records["hel-02"] = receiving(records["hel-02"], 8, 100, 90);
    records["hel-04"] = receiving(records["hel-04"], 8, 80, 40);
    rates.observe(records, start_instant - 5s);
    records["use-01"] = receiving(records["use-01"], 8, 360, 320);
    records["hel-01"] = receiving(records["hel-01"], 8, 300, 240);
    records["hel-02"].reachable = false;
    records["hel-02"].reason_code = "UNREACHABLE";
    records["hel-02"].reason_text = "link to hel-01 lost: connection reset";
    records["hel-03"].state = NodeState::failed;
    records["hel-03"].reason_code = "DISK_FULL";
    records["hel-03"].reason_text = "needs 1.9 GiB, free 0.7 GiB on /srv/ckpt";
    rates.observe(records, start_instant);
    input.refit.version = Version{8};
    input.refit.base = Version{7};
    input.refit.phase = RefitSummary::Phase::distributing;
    input.refit.opened = start_instant - 12s;
    input.refit.first_record = start_instant - 11s;
    input.encode.dense_bytes = 140'000'000'000;
    input.encode.scanned_bytes = 70'000'000'000;
    input.encode.payload_bytes = 400'000'000;
    input.encode.changed_percent = 2.97;
    input.history = &history;
    input.rates = &rates;
  }
};

/// v8 decided with hel-04 left out and not back yet.
FleetInput committed_input(const topology::Plan& plan) {
  FleetInput input = sample_input(plan);
  for (auto& [name, record] : input.records) record.committed = Version{8};
  input.records["hel-04"].committed = Version{7};
  input.image_version = Version{8};
  RefitSummary& refit = input.refit;
  refit.version = Version{8};
  refit.base = Version{7};
  refit.phase = RefitSummary::Phase::committed;
  refit.opened = start_instant - 60s;
  refit.first_record = start_instant - 59s;
  refit.encoded = start_instant - 40s;
  refit.prepared = start_instant - 31500ms;
  refit.decided = start_instant - 31s;
  refit.prepared_nodes = 5;
  refit.committed_nodes = 5;
  refit.expected_nodes = 6;
  refit.left_out = {"hel-04"};
  input.encode.dense_bytes = 140'000'000'000;
  input.encode.scanned_bytes = 140'000'000'000;
  input.encode.payload_bytes = 1'652'000'000;
  input.encode.changed_percent = 3.01;
  return input;
}

}  // namespace

TEST_SUITE("relay/admin/fleet_view") {
  TEST_CASE("golden: a quiet fleet") {
    const auto plan = sample_plan();
    const FleetInput input = sample_input(plan);
    check_golden("status_quiet.json", status_text(input));
    check_golden("nodes_quiet.json", indented_json(to_json(nodes_document(input))));
  }

  TEST_CASE("golden: a refit in flight with a lost node, a node below it and a failed one") {
    const Disturbed fleet;
    check_golden("status_disturbed.json", status_text(fleet.input));
    check_golden("nodes_disturbed.json", indented_json(to_json(nodes_document(fleet.input))));
    check_golden("refit_disturbed.json", indented_json(to_json(refit_document(fleet.input))));
  }

  TEST_CASE("a node that waits without having failed is a warning with its reason") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    NodeRecord& record = input.records["hel-03"];
    record.reason_code = "ENGINE_READS";
    record.reason_text = "the refit to v8 waits for pid 4711 (engine)";
    const StatusDocument status = status_document(input);
    CHECK(status.health.level == "WARN");
    REQUIRE(status.health.checks.size() == 1);
    CHECK(status.health.checks[0].code == "ENGINE_READS");
    CHECK(status.health.checks[0].node == "hel-03");
    CHECK(status.health.checks[0].text == record.reason_text);
    CHECK(status.health.checks[0].fix.find("engine") != std::string::npos);
  }

  TEST_CASE("golden: a decided refit and its row in the history") {
    const auto plan = sample_plan();
    const FleetInput input = committed_input(plan);
    check_golden("refit_committed.json", indented_json(to_json(refit_document(input))));
    VersionDocument document;
    document.at = input.at;
    document.version = version_row(input);
    check_golden("version_committed.json", indented_json(to_json(document)));
  }

  TEST_CASE("golden: what a relay says of its own subtree") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    input.is_root = false;
    input.node = "hel-01";
    input.records.erase("trn-00");
    input.records.erase("use-01");
    input.records["hel-01"] = receiving(input.records["hel-01"], 8, 50, 50);
    input.records["hel-02"] = receiving(input.records["hel-02"], 8, 40, 30);
    check_golden("status_relay.json", status_text(input));
    const NodesDocument nodes = nodes_document(input);
    REQUIRE(nodes.nodes.size() == 4);
    CHECK(nodes.nodes.front().name == "hel-01");
    CHECK(nodes.in_flight_version == Version{8});
  }

  TEST_CASE("a node without a record is unreachable, not absent") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    input.records.erase("hel-04");
    const NodesDocument nodes = nodes_document(input);
    CHECK(nodes.nodes.size() == 6);
    const NodeRow& row = row_of(nodes, "hel-04");
    CHECK(row.state == "unreachable");
    CHECK(row.planned_parent == "hel-02");
    REQUIRE(row.reason);
    CHECK(row.reason->code == "NODE_UNREACHABLE");
    CHECK(row.reason->text == "not heard from since relayd started on trn-00");
    CHECK(codes_of(health_of(input)) == Codes{"NODE_UNREACHABLE hel-04"});
  }

  TEST_CASE("nodes that re-attached elsewhere are reachable and adopted, and the lost node's check counts them") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    input.records["hel-01"].reachable = false;
    input.records["hel-01"].reason_text = "link to use-01 lost: no heartbeat";
    input.records["hel-02"].parent = "use-01";
    const NodesDocument nodes = nodes_document(input);
    CHECK(row_of(nodes, "hel-02").adopted);
    CHECK(row_of(nodes, "hel-02").actual_parent == "use-01");
    CHECK(row_of(nodes, "hel-02").state == "IDLE");
    CHECK(row_of(nodes, "hel-04").state == "IDLE");
    CHECK_FALSE(row_of(nodes, "hel-04").adopted);
    CHECK(row_of(nodes, "hel-03").state == "unreachable");
    CHECK(row_of(nodes, "hel-03").reason->code == "PARENT_DOWN");
    CHECK(row_of(nodes, "hel-03").reason->text == "its parent hel-01 is unreachable");
    const Health health = health_of(input);
    REQUIRE(codes_of(health) == Codes{"NODE_UNREACHABLE hel-01"});
    CHECK(health.checks.front().text ==
          "link to use-01 lost: no heartbeat; of the nodes below it 1 re-attached elsewhere, 1 out of reach");
  }

  TEST_CASE("stale records that name each other as parents end as unreachable, not as an endless walk") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    input.records["hel-02"].parent = "hel-03";
    input.records["hel-03"].parent = "hel-02";
    const NodesDocument nodes = nodes_document(input);
    CHECK(row_of(nodes, "hel-02").state == "unreachable");
    CHECK(row_of(nodes, "hel-03").state == "unreachable");
    CHECK(row_of(nodes, "hel-01").state == "IDLE");
  }

  TEST_CASE("a lost quorum is an error that says how many are needed, and errors come first") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    input.policy.quorum = 0.95;
    input.records.erase("hel-04");
    const Health health = health_of(input);
    CHECK(health.level == "ERR");
    REQUIRE(codes_of(health) == Codes{"QUORUM_LOST", "NODE_UNREACHABLE hel-04"});
    CHECK(health.checks.front().text ==
          "5 of 6 nodes are reachable, policy quorum 0.95 needs 6: a refit cannot commit now");
    input.policy.commit_if_quorum = true;
    input.policy.timeout_quorum = 0.8;
    CHECK(health_of(input).level == "WARN");
  }

  TEST_CASE("failures are warnings while they are retried and errors when they are not") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    NodeRecord& record = input.records["hel-03"];
    record.state = NodeState::failed;
    record.reason_code = "READ_ONLY";
    record.reason_text = "/srv/ckpt is read-only";
    CHECK(health_of(input).level == "WARN");
    CHECK(health_of(input).checks.front().text == "/srv/ckpt is read-only; tried again by itself");
    record.retryable = false;
    CHECK(health_of(input).level == "ERR");
    CHECK(health_of(input).checks.front().code == "READ_ONLY");
    CHECK(health_of(input).checks.front().fix.find("writable") != std::string::npos);
  }

  TEST_CASE("an idle node behind the mesh is stale, but not while a refit is in flight") {
    const auto plan = sample_plan();
    FleetInput input = committed_input(plan);
    CHECK(codes_of(health_of(input)) == Codes{"STALE hel-04"});
    CHECK(health_of(input).checks.front().text == "it is at v7, the mesh is at v8");
    input.refit = RefitSummary{};
    input.refit.version = Version{9};
    input.refit.phase = RefitSummary::Phase::distributing;
    CHECK(health_of(input).level == "OK");
  }

  TEST_CASE("an aborted refit is a warning with its cause, and no longer in flight") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    input.refit.version = Version{8};
    input.refit.phase = RefitSummary::Phase::aborted;
    input.refit.opened = start_instant - 20s;
    input.refit.decided = input.refit.closed = start_instant - 10s;
    input.refit.why = "prepare timed out";
    CHECK(codes_of(health_of(input)) == Codes{"REFIT_ABORTED"});
    CHECK_FALSE(status_document(input).in_flight);
    const RefitDocument refit = refit_document(input);
    CHECK(refit.result == "aborted");
    REQUIRE(refit.refit);
    CHECK(refit.refit->phase == "CLOSED");
    CHECK(refit.refit->elapsed_seconds == 10);
    CHECK(version_row(input).result == "aborted");
    CHECK(version_row(input).at == start_time - 10s);
  }

  TEST_CASE("a decided refit is in flight while a node still commits, not while one is away") {
    const auto plan = sample_plan();
    FleetInput input = committed_input(plan);
    input.records["hel-04"].reachable = false;
    CHECK_FALSE(status_document(input).in_flight);
    input.records["hel-03"].committed = Version{7};
    input.records["hel-03"].receiving = Version{8};
    input.records["hel-03"].state = NodeState::committing;
    const StatusDocument status = status_document(input);
    REQUIRE(status.in_flight);
    CHECK(status.in_flight->phase == "DECIDED");
    CHECK(status.committed.version == Version{8});
    CHECK(status.committed.nodes_committed == 4);
    CHECK(status.committed.at == start_time - 31s);
  }

  TEST_CASE("a node that the plan does not have is shown last and warned about") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    input.records["stranger"] = sample_record("stranger", "trn-00", 7);
    const NodesDocument nodes = nodes_document(input);
    CHECK(nodes.nodes.back().name == "stranger");
    CHECK(nodes.nodes.back().planned_parent == "");
    CHECK(codes_of(health_of(input)) == Codes{"NOT_IN_PLAN stranger"});
    CHECK(status_document(input).committed.nodes_total == 6);
  }

  TEST_CASE("a relay without a parent says so of itself") {
    const auto plan = sample_plan();
    FleetInput input = sample_input(plan);
    input.is_root = false;
    input.node = "hel-02";
    input.records = {{"hel-02", sample_record("hel-02", "", 7)}, {"hel-04", sample_record("hel-04", "hel-02", 7)}};
    CHECK(codes_of(health_of(input)) == Codes{"PARENT_DOWN hel-02"});
  }

  TEST_CASE("the page of one node has its row, and unknown names have none") {
    const auto plan = sample_plan();
    const FleetInput input = sample_input(plan);
    const auto page = node_document(input, "hel-03");
    REQUIRE(page);
    REQUIRE(page->nodes.size() == 1);
    CHECK(page->nodes.front().name == "hel-03");
    CHECK(page->committed_version == Version{7});
    CHECK_FALSE(node_document(input, "hel-99"));
  }

  TEST_CASE("a core that has said nothing yet makes a document and no crash") {
    const auto plan = sample_plan();
    NodeConfig config;
    config.name = "trn-00";
    config.is_root = true;
    config.expected = {"trn-00"};
    const Node node(config);
    const FleetInput input = fleet_input(node, plan, start_instant, start_time);
    const NodesDocument nodes = nodes_document(input);
    CHECK(nodes.nodes.size() == 6);
    CHECK(row_of(nodes, "trn-00").state == "STARTING");
    CHECK(status_document(input).committed.version == Version{});
    CHECK_FALSE(refit_document(input).refit);
  }
}
