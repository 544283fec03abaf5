// `relayctl wait`: what counts as reached, what can never be, and how it ends when time is up.
#include <doctest/doctest.h>

#include "tests/tools/relayctl/ask_daemon.hpp"
#include "tools/relayctl/wait_conditions.hpp"

namespace deltarelay::relayctl::test {
namespace {

Ran wait(const FakeDaemon& daemon, std::vector<std::string> arguments, Pace& pace) {
  arguments.insert(arguments.begin(), {"--socket", daemon.socket(), "--utc", "wait"});
  return run_relayctl(arguments, pace);
}

Ran wait(const FakeDaemon& daemon, std::vector<std::string> arguments) {
  TestPace pace;
  return wait(daemon, std::move(arguments), pace);
}

StatusDocument status_at(std::uint64_t committed, std::uint64_t nodes) {
  StatusDocument status = calm_status();
  status.committed.version = Version{committed};
  status.committed.nodes_committed = nodes;
  status.committed.nodes_total = 20;
  return status;
}

NodesDocument nodes_at(std::uint64_t committed, const std::vector<std::uint64_t>& versions) {
  NodesDocument document;
  document.at = noon();
  document.committed_version = Version{committed};
  for (std::size_t index = 0; index < versions.size(); ++index) {
    NodeRow row = sample_node(("n" + std::to_string(index)).c_str(), "r", index == 0 ? "" : "n0", "IDLE");
    row.version = Version{versions[index]};
    document.nodes.push_back(row);
  }
  return document;
}

}  // namespace

TEST_SUITE("tools/relayctl/wait") {
  TEST_CASE("committed: ends once the version or a later one is decided") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/status", to_json(status_at(6, 20)));
    daemon.answer("GET /v1/status", to_json(status_at(8, 3)));
    TestPace pace;
    const Ran ran = wait(daemon, {"committed", "--version", "7"}, pace);
    CHECK(ran.exit_code == 0);
    CHECK(ran.out == "v8 committed on 3/20 nodes, after 250ms\n");
    CHECK(ran.err == "waiting for v7 to be committed: from relayd at " + daemon.socket() +
                         ", since 2026-01-31T12:00:00Z, until 2026-01-31T12:10:00Z\nv6 committed on 20/20 nodes, "
                         "nothing is in flight\n");
  }

  TEST_CASE("committed --percent: nodes are counted, and 19 of 20 are 95 %") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/status", to_json(status_at(7, 19)));
    CHECK(wait(daemon, {"committed", "--version", "7", "--percent", "95"}).exit_code == 0);
    CHECK(wait(daemon, {"committed", "--version", "7", "--percent", "95.1", "--timeout", "2s"}).exit_code == 5);
  }

  TEST_CASE("committed without a version: the one in flight at the first look, whatever follows it") {
    FakeDaemon daemon;
    StatusDocument flying = status_at(1842, 20);
    flying.in_flight = sample_refit();
    daemon.answer("GET /v1/status", to_json(flying));
    daemon.answer("GET /v1/status", to_json(status_at(1843, 20)));
    const Ran ran = wait(daemon, {"committed", "-o", "name"});
    CHECK(ran.out == "1843\n");
    CHECK(contains(ran.err, "waiting for v1843 to be committed"));
  }

  TEST_CASE("a version that was aborted is not waited for, also when history alone remembers it") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/status", to_json(status_at(1842, 20)));
    daemon.answer("GET /v1/nodes", to_json(nodes_at(1842, {1842, 1842})));
    daemon.answer("GET /v1/refit", to_json(closed_refit("aborted", "hel-41 failed")));
    VersionRow row = sample_version();
    row.version = Version{1844};
    row.result = "aborted";
    row.why = "an operator asked for it";
    daemon.answer("GET /v1/versions/1844", to_json(VersionDocument{noon(), row}));
    const Ran recent = wait(daemon, {"committed", "--version", "1843"});
    CHECK(recent.exit_code == 1);
    CHECK(contains(recent.err, "v1843 will never be committed: it was aborted: hel-41 failed"));
    CHECK(wait(daemon, {"converged", "--version", "1843"}).exit_code == 1);
    CHECK(contains(wait(daemon, {"committed", "--version", "1844"}).err, "an operator asked for it"));
  }

  TEST_CASE("converged: every node holds what is committed, not merely what was asked for") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/nodes", to_json(nodes_at(8, {8, 7, 8})));
    daemon.answer("GET /v1/nodes", to_json(nodes_at(8, {8, 8, 8})));
    TestPace pace;
    const Ran ran = wait(daemon, {"converged", "--version", "7"}, pace);
    CHECK(ran.out == "3/3 nodes hold v8, after 250ms\n");
    CHECK(contains(ran.err, "2/3 nodes hold v8; not n1 (IDLE)\n"));
  }

  TEST_CASE("converged: a node that nobody reaches does not count, whatever it held") {
    FakeDaemon daemon;
    NodesDocument nodes = nodes_at(8, {8, 8, 8, 8});
    nodes.nodes[3].state = "unreachable";
    CHECK(holders(nodes, Version{8}) == 3);
    daemon.answer("GET /v1/nodes", to_json(nodes));
    TestPace pace;
    const Ran ran = wait(daemon, {"converged", "--timeout", "90s"}, pace);
    CHECK(ran.exit_code == 5);
    CHECK(ran.out.empty());
    CHECK(
        contains(ran.err,
                 "error: timed out waiting for every node to hold the committed version: after 1m 30s: 3/4 nodes hold "
                 "v8; not n3 (unreachable). Try: relayctl tree\n"));
    CHECK(pace.passed() == std::chrono::seconds(90));
    CHECK(wait(daemon, {"converged", "--percent", "75"}).exit_code == 0);
  }

  TEST_CASE("converged: a node that takes an aborted refit back does not hold its version until it is done") {
    FakeDaemon daemon;
    NodesDocument nodes = nodes_at(8, {8, 8, 8});
    nodes.nodes[1].state = "SYNCING";
    nodes.nodes[1].undoing_version = Version{9};
    daemon.answer("GET /v1/nodes", to_json(nodes));
    daemon.answer("GET /v1/nodes", to_json(nodes_at(8, {8, 8, 8})));
    const Ran ran = wait(daemon, {"converged"});
    CHECK(ran.out == "3/3 nodes hold v8, after 250ms\n");
    CHECK(contains(ran.err, "2/3 nodes hold v8; not n1 (SYNCING)\n"));
  }

  TEST_CASE("committed: says whom the refit waits for, and when there is none to wait for") {
    FakeDaemon daemon;
    StatusDocument waits = status_at(1842, 20);
    waits.in_flight = sample_refit();
    waits.in_flight->phase = "PREPARING";
    waits.in_flight->awaited = {2, {{"bom-01", "unreachable"}}, 600};
    daemon.answer("GET /v1/status", to_json(waits));
    daemon.answer("GET /v1/status", to_json(status_at(1842, 20)));
    const Ran ran = wait(daemon, {"committed", "--version", "1843", "--timeout", "1s"});
    CHECK(contains(ran.err, "v1843 PREPARING 63 %, waits for bom-01 (unreachable) and 1 more\n"));
    CHECK(contains(ran.err, "after 1s: v1842 committed on 20/20 nodes, nothing is in flight. Try: relayctl status\n"));
  }

  TEST_CASE("converged: an empty fleet and one without a version are not") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/nodes", to_json(nodes_at(0, {0, 0})));
    CHECK(wait(daemon, {"converged", "--timeout", "1s"}).exit_code == 5);
    FakeDaemon empty;
    empty.answer("GET /v1/nodes", to_json(nodes_at(8, {})));
    CHECK(wait(empty, {"converged", "--timeout", "1s"}).exit_code == 5);
  }

  TEST_CASE("converged: long lists of stragglers are cut, not left out") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/nodes", to_json(nodes_at(8, {8, 7, 7, 7, 7, 7, 7, 7, 7})));
    CHECK(contains(wait(daemon, {"converged", "--timeout", "0"}).err, "n6 (IDLE) and 2 more"));
  }

  TEST_CASE("healthy: waits for OK and names what complains") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/status", to_json(sample_status()));
    CHECK(contains(wait(daemon, {"healthy", "--timeout", "1s"}).err,
                   "health WARN: CHILD_SLOW hel-41, CERT_EXPIRES hel-02. Try: relayctl health detail\n"));
    daemon.answer("GET /v1/status", to_json(calm_status()));
    CHECK(wait(daemon, {"healthy"}).out == "health OK, after 250ms\n");
  }

  TEST_CASE("a daemon that goes away during the wait is asked again until time is up") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/nodes", to_json(nodes_at(8, {8, 7})));
    daemon.answer("GET /v1/nodes", "", 503);
    TestPace pace;
    const Ran ran = wait(daemon, {"converged", "--timeout", "1m"}, pace);
    CHECK(ran.exit_code == 5);
    CHECK(contains(ran.err, "answered HTTP 503"));
    CHECK(pace.passed() == std::chrono::seconds(60));
  }
}

}  // namespace deltarelay::relayctl::test
