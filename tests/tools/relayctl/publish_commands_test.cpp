// `publish` and `abort` from command line to exit code, against a socket that gives prepared answers.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/tools/relayctl/ask_daemon.hpp"

namespace deltarelay::relayctl::test {
namespace {

std::string accepted() {
  PublishDocument document;
  document.version = Version{1843};
  document.base = Version{1842};
  return to_json(document);
}

}  // namespace

TEST_SUITE("tools/relayctl/publish") {
  TEST_CASE("publish: the request says what the line said, with an absolute path") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/publish", accepted());
    const Ran ran = ask(daemon, {"publish", "exports/../step-7", "--version", "v1843", "--policy", "quorum:0.9"});
    CHECK(ran.exit_code == 0);
    CHECK(contains(ran.out, "v1843  accepted, base v1842"));
    PublishRequest sent;
    const std::string asked = daemon.asked().at(0);
    REQUIRE(from_json(asked.substr(asked.find('{')), sent).empty());
    CHECK(sent.dir == (std::filesystem::current_path() / "step-7").string());
    CHECK(sent.version.value() == Version{1843});
    CHECK(sent.policy == "quorum:0.9");
    CHECK_FALSE(sent.dry_run);
    CHECK(ask(daemon, {"publish", "x", "-o", "name"}).out == "1843\n");
  }

  TEST_CASE("publish --wait: progress on stderr, then the version and its times") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/publish", accepted());
    daemon.answer("GET /v1/refit", to_json(closed_refit("committed", "")));
    const Ran ran = ask(daemon, {"publish", "/srv/x", "--wait"});
    CHECK(ran.exit_code == 0);
    CHECK(contains(ran.out, "committed  v1843  192/192 nodes"));
    CHECK(contains(ran.out, "encode 9.250 s, distribute 22.1 s, prepare 14.1 s, commit 0.418 s"));
    CHECK(contains(ran.err, "waiting for v1843 (base v1842): from relayd at " + daemon.socket() +
                                ", since 2026-01-31T12:00:00Z, until the root decides\n"));
  }

  TEST_CASE("publish --wait: plain progress comes at most once a second, a terminal rewrites one line") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/publish", accepted());
    for (int step = 0; step < 20; ++step) {  // 200 ms apart: four seconds
      RefitDocument document = sample_refit_document();
      document.refit->elapsed_seconds = step;
      daemon.answer("GET /v1/refit", to_json(document));
    }
    daemon.answer("GET /v1/refit", to_json(closed_refit("committed", "")));
    const Ran plain = ask(daemon, {"publish", "/srv/x", "--wait"});
    CHECK_FALSE(contains(plain.err, "\r"));
    CHECK(std::count(plain.err.begin(), plain.err.end(), '\n') == 6);  // what is awaited, and seconds 0 to 4

    FakeDaemon other;
    other.answer("POST /v1/publish", accepted());
    other.answer("GET /v1/refit", to_json(sample_refit_document()));
    other.answer("GET /v1/refit", to_json(closed_refit("committed", "")));
    TestPace pace;
    Surroundings terminal;
    terminal.stderr_terminal = true;
    const Ran drawn = ask(other, {"publish", "/srv/x", "--wait"}, pace, terminal);
    CHECK(contains(drawn.err, "\rv1843  DISTRIBUTING"));
    CHECK(drawn.err.substr(drawn.err.size() - 4) == "\r\x1b[K");
  }

  TEST_CASE("publish --wait: an aborted refit is 1, with the root's reason") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/publish", accepted());
    daemon.answer("GET /v1/refit", to_json(closed_refit("aborted", "hel-41 failed: DISK_FULL")));
    const Ran ran = ask(daemon, {"publish", "/srv/x", "--wait"});
    CHECK(ran.exit_code == 1);
    CHECK(contains(ran.err, "error: v1843 was aborted: hel-41 failed: DISK_FULL. Try: "));
    const Ran as_json = ask(daemon, {"publish", "/srv/x", "--wait", "-o", "json"});
    VersionDocument end;
    REQUIRE(from_json(as_json.out, end).empty());
    CHECK(end.version.result == "aborted");
    CHECK(as_json.exit_code == 1);
  }

  TEST_CASE("publish --wait: after the decision it waits for nodes that arrive, not for one that is gone") {
    FakeDaemon daemon;
    RefitDocument decided = closed_refit("committed", "");
    decided.seconds.commit = 0;
    decided.refit->phase = "DECIDED";
    decided.left_out = {"hel-05"};
    daemon.answer("POST /v1/publish", accepted());
    for (const std::uint64_t nodes : {100u, 150u, 191u}) {
      decided.nodes_committed = nodes;
      daemon.answer("GET /v1/refit", to_json(decided));
    }
    TestPace pace;
    const Ran ran = ask(daemon, {"publish", "/srv/x", "--wait"}, pace);
    CHECK(ran.exit_code == 0);
    CHECK(contains(ran.out, "191/192 nodes"));
    CHECK(contains(ran.out, "commit still open\n"));
    CHECK(contains(ran.out, "left out hel-05\n"));
    CHECK(pace.passed() >= std::chrono::seconds(10));
    CHECK(pace.passed() < std::chrono::seconds(11));
  }

  TEST_CASE("publish --wait: a root that restarted answers from history, or is given up on") {
    FakeDaemon daemon;
    VersionRow row = sample_version();
    row.version = Version{1843};
    row.result = "aborted";
    row.why = "the root restarted before the decision";
    daemon.answer("POST /v1/publish", accepted());
    daemon.answer("GET /v1/refit", to_json(RefitDocument{}));
    daemon.answer("GET /v1/versions/1843", refusal("no version 1843", 6), 404);
    daemon.answer("GET /v1/versions/1843", to_json(VersionDocument{noon(), row}));
    const Ran known = ask(daemon, {"publish", "/srv/x", "--wait"});
    CHECK(known.exit_code == 1);
    CHECK(contains(known.err, "the root restarted before the decision"));

    FakeDaemon forgetful;
    forgetful.answer("POST /v1/publish", accepted());
    forgetful.answer("GET /v1/refit", to_json(RefitDocument{}));
    TestPace pace;
    const Ran lost = ask(forgetful, {"publish", "/srv/x", "--wait"}, pace);
    CHECK(lost.exit_code == 1);
    CHECK(contains(lost.err, "error: lost sight of v1843: "));
    CHECK(pace.passed() < std::chrono::seconds(11));
  }

  TEST_CASE("publish --wait: a daemon that goes away is looked for, then given up on with its own reason") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/publish", accepted());
    daemon.answer("GET /v1/refit", refusal("starting", 4), 503);
    TestPace pace;
    const Ran ran = ask(daemon, {"publish", "/srv/x", "--wait"}, pace);
    CHECK(ran.exit_code == 4);
    CHECK(pace.passed() >= std::chrono::seconds(30));
    CHECK(pace.passed() < std::chrono::seconds(31));
  }

  TEST_CASE("abort: asks the root and says so") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/abort", to_json(AbortDocument{Version{1843}}));
    CHECK(contains(ask(daemon, {"abort", "1843"}).out, "v1843  abort asked for"));
    CHECK(daemon.asked().at(0) == R"(POST /v1/abort {"version":"1843"})");
  }
}

}  // namespace deltarelay::relayctl::test
