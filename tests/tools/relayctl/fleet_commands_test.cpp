// The fleet commands from command line to exit code, against a socket that gives prepared answers.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/tools/relayctl/ask_daemon.hpp"
#include "tools/relayctl/arguments.hpp"
#include "tools/relayctl/watch.hpp"

namespace deltarelay::relayctl::test {
namespace {

long asked_times(const FakeDaemon& daemon, const std::string& question) {
  const auto asked = daemon.asked();
  return std::count(asked.begin(), asked.end(), question);
}

/// `a` is done; `b` has read this much of 100 bytes.
VerifyDocument reading_round(const std::string& round, std::uint64_t read) {
  VerifyDocument document;
  document.round = round;
  document.done = false;
  document.deep = true;
  document.nodes = {{"a", "ok", Version{7}, 100, 0, 1, "", "DONE", 100, {}},
                    {"b", "", Version{7}, read, 0, 0, "", "READING", 100, {}}};
  return document;
}

}  // namespace

TEST_SUITE("tools/relayctl/fleet") {
  TEST_CASE("no socket: every command ends with 4 and says what to try") {
    const std::string missing = (std::filesystem::temp_directory_path() / "no-relayd-here" / "admin.sock").string();
    for (const std::vector<std::string>& words : {std::vector<std::string>{"status"},
                                                  {"tree"},
                                                  {"nodes"},
                                                  {"node", "a"},
                                                  {"versions"},
                                                  {"version", "7"},
                                                  {"publish", "/srv/x"},
                                                  {"publish", "/srv/x", "--dry-run"},
                                                  {"abort", "7"},
                                                  {"verify"},
                                                  {"wait", "committed"},
                                                  {"wait", "converged"},
                                                  {"wait", "healthy"},
                                                  {"status", "-w"}}) {
      std::vector<std::string> arguments{"--socket", missing};
      arguments.insert(arguments.end(), words.begin(), words.end());
      const Ran ran = run_relayctl(arguments);
      INFO(words.front());
      CHECK(ran.exit_code == 4);
      CHECK(ran.out.empty());
      CHECK(contains(ran.err, "error: cannot reach relayd at " + missing));
      CHECK(contains(ran.err, ". Try: "));
    }
  }

  TEST_CASE("a daemon that does not answer: 5 once --timeout is over") {
    FakeDaemon daemon;
    daemon.fall_silent();
    CHECK(ask(daemon, {"status", "--timeout", "50ms"}).exit_code == 5);
    CHECK(ask(daemon, {"verify", "--timeout", "50ms"}).exit_code == 5);
    CHECK(ask(daemon, {"publish", "d", "--dry-run", "--timeout", "50ms"}).exit_code == 5);
    CHECK(ask(daemon, {"--timeout", "50ms", "wait", "healthy", "--timeout", "0"}).exit_code == 5);
  }

  TEST_CASE("the daemon's own refusal is passed on, with its exit code") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/publish", refusal("cannot publish", 6), 409);
    daemon.answer("POST /v1/abort", refusal("fenced", 8), 409);
    daemon.answer("GET /v1/versions/7", refusal("no version 7", 6), 404);
    const Ran publish = ask(daemon, {"publish", "/srv/x", "--wait"});
    CHECK(publish.exit_code == 6);
    CHECK(publish.err == "error: cannot publish: v1843 is in flight. Try: relayctl abort 1843\n");
    CHECK(ask(daemon, {"abort", "v7"}).exit_code == 8);
    CHECK(ask(daemon, {"version", "7"}).exit_code == 6);
  }

  TEST_CASE("wrong command lines: 2, and the daemon is not asked") {
    FakeDaemon daemon;
    for (const std::vector<std::string>& words : {std::vector<std::string>{"node"},
                                                  {"publish"},
                                                  {"abort"},
                                                  {"abort", "latest"},
                                                  {"wait"},
                                                  {"wait", "soon"},
                                                  {"wait", "healthy", "--version", "7"},
                                                  {"wait", "converged", "--percent", "101"},
                                                  {"wait", "converged", "--timeout", "soon"},
                                                  {"nodes", "--state", "HAPPY"},
                                                  {"health", "x"},
                                                  {"tree", "--depth", "-1"},
                                                  {"publish", "d", "--version", "0"},
                                                  {"publish", "d", "--dry-run", "--wait"},
                                                  {"verify", "--state", "/s"},
                                                  {"status", "--addr", "host:1"},
                                                  {"status", "-o", "yaml"}}) {
      const Ran ran = ask(daemon, words);
      INFO(words.back());
      CHECK(ran.exit_code == 2);
      CHECK(contains(ran.err, "error: "));
    }
    CHECK(daemon.asked().empty());
  }

  TEST_CASE("an answer that is no such document: 1, with the member that is wrong") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/status", R"({"schema":"deltarelay.status/9"})");
    const Ran ran = ask(daemon, {"status"});
    CHECK(ran.exit_code == 1);
    CHECK(contains(ran.err, "schema: is deltarelay.status/9"));
  }

  TEST_CASE("status --check: the health as exit code") {
    FakeDaemon daemon;
    StatusDocument bad = sample_status();
    bad.health.level = "ERR";
    daemon.answer("GET /v1/status", to_json(calm_status()));
    daemon.answer("GET /v1/status", to_json(sample_status()));
    daemon.answer("GET /v1/status", to_json(bad));
    CHECK(ask(daemon, {"status", "--check"}).exit_code == 0);
    CHECK(ask(daemon, {"status", "--check"}).exit_code == 10);
    CHECK(ask(daemon, {"status", "--check"}).exit_code == 11);
    CHECK(ask(daemon, {"status"}).exit_code == 0);
    const Ran health = ask(daemon, {"health", "detail"});
    CHECK(health.exit_code == 11);
    CHECK(contains(health.out, "fix: look at its disk"));
  }

  TEST_CASE("-o json keeps what the daemon said, members unknown here included") {
    FakeDaemon daemon;
    std::string body = to_json(calm_status());
    body.insert(1, R"("from_the_future":1,)");
    daemon.answer("GET /v1/status", body);
    const Ran ran = ask(daemon, {"status", "-o", "json"});
    CHECK(ran.exit_code == 0);
    CHECK(contains(ran.out, "\"from_the_future\": 1"));
    StatusDocument back;
    CHECK(from_json(ran.out, back).empty());
    CHECK(back.mesh == "prod-llm70b");
  }

  TEST_CASE("what a node says of itself cannot steer the operator's terminal") {
    FakeDaemon daemon;
    NodesDocument nodes = sample_nodes();
    nodes.nodes[6].reason = {"DISK_FULL",
                             "a\x1b]0;b\x07"
                             "c\x7f"
                             "d\xc2\x9b"
                             "e\nf\\u001bg ü"};
    daemon.answer("GET /v1/nodes", to_json(nodes));
    const Ran text = ask(daemon, {"nodes"});
    CHECK(contains(text.out, "DISK_FULL: a?]0;b?c?d?e f\\u001bg ü\n"));
    NodesDocument back;
    REQUIRE(from_json(ask(daemon, {"nodes", "-o", "json"}).out, back).empty());
    CHECK(back.nodes[6].reason->text == nodes.nodes[6].reason->text);
    daemon.answer("GET /v1/status", refusal("a\x1b[2Jb", 6), 409);
    CHECK(contains(ask(daemon, {"status"}).err, "error: a?[2Jb: "));
  }

  TEST_CASE("a screen is cut to the rows that the terminal has") {
    CHECK(screen("a\nb\n", 0) == "\x1b[H\x1b[?7la\x1b[K\nb\x1b[K\n\x1b[J\x1b[?7h");
    CHECK(screen("a\nb\n", 3) == screen("a\nb\n", 0));
    CHECK(screen("a\nb\nc\nd\n", 4) == "\x1b[H\x1b[?7la\x1b[K\nb\x1b[K\n2 more lines do not fit\x1b[K\n\x1b[J\x1b[?7h");
  }

  TEST_CASE("status -w: a terminal is rewritten, a pipe gets one view after the other, JSON a document a line") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/status", to_json(calm_status()));
    TestPace two(2);
    const Ran piped = ask(daemon, {"status", "-w"}, two);
    CHECK(contains(piped.out, "\n\nmesh "));
    CHECK_FALSE(contains(piped.out, "\x1b"));
    TestPace two_more(2);
    Surroundings terminal;
    terminal.stdout_terminal = true;
    CHECK(contains(ask(daemon, {"status", "-w"}, two_more, terminal).out, "\x1b[H"));
    TestPace three(3);
    const Ran lines = ask(daemon, {"status", "-w", "-o", "json"}, three);
    CHECK(std::count(lines.out.begin(), lines.out.end(), '\n') == 3);
    CHECK(three.passed() == std::chrono::seconds(3));
  }

  TEST_CASE("status -w outlives a daemon that restarts") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/status", to_json(calm_status()));
    daemon.answer("GET /v1/status", refusal("starting", 4), 503);
    daemon.answer("GET /v1/status", to_json(calm_status()));
    TestPace pace(3);
    const Ran ran = ask(daemon, {"status", "-w"}, pace);
    CHECK(ran.exit_code == 0);
    CHECK(contains(ran.err, "error: starting"));
    CHECK(contains(ran.out, "\n\nmesh "));
  }

  TEST_CASE("tree and nodes: filters, names, and what does not exist") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/tree", to_json(sample_nodes()));
    daemon.answer("GET /v1/nodes", to_json(sample_nodes()));
    CHECK(ask(daemon, {"tree", "hel-01", "-o", "name"}).out == "hel-01\nhel-02\nhel-05\nhel-09\n");
    CHECK(ask(daemon, {"nodes", "--state", "failed", "-o", "name"}).out == "use-02\n");
    const Ran filtered = ask(daemon, {"nodes", "--state", "UNREACHABLE", "-o", "json"});
    NodesDocument back;
    REQUIRE(from_json(filtered.out, back).empty());
    REQUIRE(back.nodes.size() == 1);
    CHECK(back.nodes[0].name == "hel-05");
    const Ran no_region = ask(daemon, {"tree", "--region", "mars"});
    CHECK(no_region.exit_code == 6);
    CHECK(contains(no_region.err, "eu-north, us-east"));
    CHECK(ask(daemon, {"tree", "nobody"}).exit_code == 6);
    CHECK(ask(daemon, {"node", "nobody"}).exit_code == 6);
    CHECK(contains(ask(daemon, {"node", "hel-01"}).out, "children\n"));
  }

  TEST_CASE("versions and version") {
    FakeDaemon daemon;
    daemon.answer("GET /v1/versions", to_json(sample_versions()));
    daemon.answer("GET /v1/versions/1842", to_json(VersionDocument{noon(), sample_version()}));
    CHECK(ask(daemon, {"versions", "-o", "name"}).out == "1842\n1841\n1840\n");
    CHECK(contains(ask(daemon, {"version", "v1842"}).out, "left out  bom-07, hel-41\n"));
    CHECK(contains(ask(daemon, {"version"}).out, "relayctl "));
    CHECK(asked_times(daemon, "GET /v1/versions/1842") == 1);
  }

  TEST_CASE("verify: a damaged image is 1, and -o name lists whoever is not ok") {
    FakeDaemon daemon;
    VerifyDocument document;
    document.nodes = {{"a", "ok", Version{7}, 1, 0, 1, ""}, {"b", "damaged", Version{7}, 1, 2, 1, "block 3"}};
    daemon.answer("POST /v1/verify", to_json(document));
    const Ran ran = ask(daemon, {"verify", "--deep", "-o", "name"});
    CHECK(ran.exit_code == 1);
    CHECK(ran.out == "b\n");
    CHECK(daemon.asked().at(0) == R"(POST /v1/verify {"deep":true,"wait":false})");
    CHECK(contains(ran.err, "until 2026-01-31T14:00:00Z\n"));
    CHECK(contains(ran.err, "error: b: the image is not what its ledger states: block 3. Try: "));
    CHECK(daemon.asked().size() == 1);
  }

  TEST_CASE("verify: asks again until nobody is waited for, with progress on stderr") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/verify", to_json(reading_round("11", 10)));
    daemon.answer("GET /v1/verify", to_json(reading_round("11", 40)));
    VerifyDocument done = reading_round("11", 100);
    done.done = true;
    done.nodes[1].result = "ok";
    daemon.answer("GET /v1/verify", to_json(done));
    const Ran ran = ask(daemon, {"verify", "--deep"});
    CHECK(ran.exit_code == 0);
    CHECK(contains(ran.err, "1 of 2 nodes done, 55 % read, last b reading 10 %"));
    CHECK(contains(ran.out, "2 of 2 images ok"));
    CHECK(daemon.asked().size() == 3);
    Surroundings terminal;
    terminal.stderr_terminal = true;
    daemon.answer("GET /v1/verify", to_json(done));
    TestPace pace;
    CHECK(contains(ask(daemon, {"verify", "--deep"}, pace, terminal).err, "\r1 of 2 nodes done"));
  }

  TEST_CASE("verify: when the time is over, what is known so far and 5") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/verify", to_json(reading_round("11", 10)));
    daemon.answer("GET /v1/verify", to_json(reading_round("11", 40)));
    const Ran ran = ask(daemon, {"verify", "--deep", "--timeout", "3s", "-o", "json"});
    CHECK(ran.exit_code == 5);
    CHECK(contains(ran.out, R"("done": false)"));
    CHECK(contains(ran.err, "error: the time is over before every node has finished: b. Try: "));
  }

  TEST_CASE("verify: a round that another replaced, or that a restart ended, is not waited for") {
    FakeDaemon daemon;
    daemon.answer("POST /v1/verify", to_json(reading_round("11", 10)));
    daemon.answer("GET /v1/verify", to_json(reading_round("12", 10)));
    daemon.answer("GET /v1/verify", refusal("cannot show a verification", 6), 404);
    const Ran replaced = ask(daemon, {"verify"});
    CHECK(replaced.exit_code == 6);
    CHECK(contains(replaced.err, "a newer one has replaced it"));
    CHECK(replaced.out.empty());
    const Ran restarted = ask(daemon, {"verify"});
    CHECK(restarted.exit_code == 6);
    CHECK(contains(restarted.err, "relayd was restarted"));
  }

  TEST_CASE("arguments: versions and shares as people type them") {
    CHECK(parse_version("v1843").value() == Version{1843});
    CHECK(parse_version("18446744073709551615").value() == Version{18446744073709551615U});
    for (const char* wrong : {"", "v", "0", "-1", "+1", "18446744073709551616", "7x", "vv7", " 7"}) {
      INFO(wrong);
      CHECK_FALSE(parse_version(wrong).has_value());
    }
    CHECK(parse_percent("99.5%").value() == doctest::Approx(99.5));
    for (const char* wrong : {"", "%", "-1", "100.1", "nan", "1e1", "5%%"}) {
      INFO(wrong);
      CHECK_FALSE(parse_percent(wrong).has_value());
    }
  }
}

}  // namespace deltarelay::relayctl::test
