// relayd.yaml: each key, each bound, what must agree, and the effective configuration as a file again.
#include "config/relayd_config.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "config/topology_file.hpp"

using namespace deltarelay::config;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr const char* least =
    "node: hel-01\n"                                // line 1
    "role: relay\n"                                 // line 2
    "topology: topology.yaml\n"                     // line 3
    "state_dir: /var/lib/relayd\n"                  // line 4
    "image: {dir: /srv/checkpoint}\n"               // line 5
    "tls: {cert: c.crt, key: c.key, ca: ca.crt}\n"  // line 6
    "content_key: {public: content.pub}\n";         // line 7

LoadedConfig parse(const std::string& text) {
  return parse_relayd_config("/etc/relayd/relayd.yaml", text);
}

/// The findings, with the file's name left out.
std::string findings_of(const std::string& text) {
  std::string out = parse(text).findings.text();
  for (std::size_t at = 0; (at = out.find("/etc/relayd/relayd.yaml", at)) != std::string::npos;) out.erase(at, 23);
  return out;
}

/// `least` with one piece replaced by another.
std::string altered(std::string_view piece, std::string_view by) {
  std::string text = least;
  const auto at = text.find(piece);
  REQUIRE(at != std::string::npos);
  return text.replace(at, piece.size(), by);
}

RelaydConfig config_of(const std::string& text) {
  LoadedConfig loaded = parse(text);
  CHECK(loaded.findings.text() == "");
  REQUIRE(loaded.config.has_value());
  return *loaded.config;
}

/// One line after `least` loads without findings.
bool taken(const std::string& line) {
  return findings_of(least + line) == "";
}

/// One line after `least` is one finding, on that line, that says this.
bool refused(const std::string& line, std::string_view message) {
  const std::string found = findings_of(least + line);
  INFO(found);
  CHECK(std::count(found.begin(), found.end(), '\n') == 1);
  CHECK(found.rfind(":8:", 0) == 0);
  return found.find(message) != std::string::npos;
}

}  // namespace

TEST_SUITE("config/relayd_config") {
  TEST_CASE("the least that is needed loads, with paths from the file's directory and documented defaults") {
    const RelaydConfig config = config_of(least);
    CHECK(config.file == "/etc/relayd/relayd.yaml");
    CHECK(config.node == "hel-01");
    CHECK(config.role == Role::relay);
    CHECK(config.topology == "/etc/relayd/topology.yaml");
    CHECK(config.state_dir == "/var/lib/relayd");
    CHECK(config.image.dir == "/srv/checkpoint");
    CHECK(config.image.block_bytes == 1 << 20);
    CHECK(config.image.copies == 1);
    CHECK(config.tls.cert == "/etc/relayd/c.crt");
    CHECK(config.tls.key == "/etc/relayd/c.key");
    CHECK(config.tls.ca == "/etc/relayd/ca.crt");
    CHECK_FALSE(config.tls.crl.has_value());
    CHECK(config.content_key.public_key == "/etc/relayd/content.pub");
    CHECK_FALSE(config.content_key.private_key.has_value());
    CHECK_FALSE(config.listen.has_value());
    CHECK(config.admin.socket == "/run/relayd/admin.sock");
    CHECK(config.admin.mode == 0660);
    CHECK(config.log.level == LogLevel::info);
    CHECK(config.log.format == LogFormat::logfmt);
    CHECK(config.limits.log_bytes == 64ull << 30);
    CHECK(config.limits.memory_bytes == 256ull << 20);
    CHECK(config.limits.child_window_bytes == 8ull << 20);
    CHECK(config.limits.max_children == 32);
    CHECK(config.limits.handshakes == 64);
    CHECK(config.limits.apply_threads == 0);
    CHECK(config.limits.encode_threads == 0);
    CHECK(config.limits.io_threads == 2);
    CHECK(config.timeouts.heartbeat == 1s);
    CHECK(config.timeouts.dead == 5s);
    CHECK(config.timeouts.progress == 30s);
    CHECK(config.timeouts.handshake == 5s);
    CHECK(config.timeouts.prepare == 10min);
    CHECK(config.commit.policy == CommitPolicy::all);
    CHECK(config.commit.quorum == 0.95);
    CHECK(config.commit.on_timeout == OnTimeout::abort);
  }

  TEST_CASE("every key reaches its field") {
    const RelaydConfig config = config_of(
        "node: trn-00\nrole: root\ntopology: ../t.yaml\nstate_dir: state\n"
        "image: {dir: image, block_size: 64KiB, copies: 1}\n"
        "tls: {cert: a, key: b, ca: c, crl: d}\n"
        "content_key: {public: p, private: q}\n"
        "listen: \"[::]:7443\"\n"
        "admin: {socket: admin.sock, mode: 0600}\n"
        "log: {level: debug, format: json}\n"
        "limits: {log_bytes: 1GiB, memory_bytes: 64MiB, child_window_bytes: 4MiB, max_children: 7, handshakes: 9,\n"
        "         apply_threads: 3, encode_threads: 4, io_threads: 5}\n"
        "timeouts: {heartbeat: 100ms, dead: 500ms, progress: 2s, handshake: 3s, prepare: 1h}\n"
        "commit: {policy: quorum, quorum: 80%, on_timeout: commit_if_quorum}\n");
    CHECK(config.role == Role::root);
    CHECK(config.topology == "/etc/t.yaml");
    CHECK(config.state_dir == "/etc/relayd/state");
    CHECK(config.image.dir == "/etc/relayd/image");
    CHECK(config.image.block_bytes == 64 * 1024);
    CHECK(config.tls.crl.value() == "/etc/relayd/d");
    CHECK(config.content_key.private_key.value() == "/etc/relayd/q");
    CHECK(config.listen.value() == deltarelay::topology::Address{"::", 7443});
    CHECK(config.admin.socket == "/etc/relayd/admin.sock");
    CHECK(config.admin.mode == 0600);
    CHECK(config.log.level == LogLevel::debug);
    CHECK(config.log.format == LogFormat::json);
    CHECK(config.limits.log_bytes == 1ull << 30);
    CHECK(config.limits.memory_bytes == 64ull << 20);
    CHECK(config.limits.child_window_bytes == 4ull << 20);
    CHECK(config.limits.max_children == 7);
    CHECK(config.limits.handshakes == 9);
    CHECK(config.limits.apply_threads == 3);
    CHECK(config.limits.encode_threads == 4);
    CHECK(config.limits.io_threads == 5);
    CHECK(config.timeouts.heartbeat == 100ms);
    CHECK(config.timeouts.dead == 500ms);
    CHECK(config.timeouts.progress == 2s);
    CHECK(config.timeouts.handshake == 3s);
    CHECK(config.timeouts.prepare == 1h);
    CHECK(config.commit.policy == CommitPolicy::quorum);
    CHECK(config.commit.quorum == doctest::Approx(0.8));
    CHECK(config.commit.on_timeout == OnTimeout::commit_if_quorum);
  }

  TEST_CASE("a missing key that has no default is named") {
    for (const std::string line :
         {"node: hel-01\n", "topology: topology.yaml\n", "state_dir: /var/lib/relayd\n", "role: relay\n",
          "image: {dir: /srv/checkpoint}\n", "tls: {cert: c.crt, key: c.key, ca: ca.crt}\n",
          "content_key: {public: content.pub}\n"}) {
      CAPTURE(line);
      const std::string key = line.substr(0, line.find(':'));
      CHECK(findings_of(altered(line, "")) == ":1:1: error: key \"" + key + "\" is missing\n");
    }
    CHECK(findings_of(altered("cert: c.crt, ", "")) == ":6:6: error: key \"tls.cert\" is missing\n");
    CHECK(findings_of(altered("key: c.key, ", "")) == ":6:6: error: key \"tls.key\" is missing\n");
    CHECK(findings_of(altered(", ca: ca.crt", "")) == ":6:6: error: key \"tls.ca\" is missing\n");
    CHECK(findings_of(altered("dir: /srv/checkpoint", "copies: 1")) == ":5:8: error: key \"image.dir\" is missing\n");
    CHECK(findings_of(altered("public: content.pub", "")) == ":7:14: error: key \"content_key.public\" is missing\n");
  }

  TEST_CASE("each number is taken at its bounds and refused past them") {
    struct Case {
      const char *section, *key, *least, *most, *below, *above;
    };
    const Case cases[] = {
        {"limits", "log_bytes", "1MiB", "1PiB", "1048575", "1125899906842625"},
        {"limits", "child_window_bytes", "1MiB", "128MiB", "1048575", "4294967297"},
        {"limits", "max_children", "1", "4096", "0", "4097"},
        {"limits", "handshakes", "1", "4096", "0", "4097"},
        {"limits", "apply_threads", "0", "1024", "-1", "1025"},
        {"limits", "encode_threads", "0", "1024", "-1", "1025"},
        {"limits", "io_threads", "1", "64", "0", "65"},
        {"timeouts", "heartbeat", "10ms", "2500ms", "9ms", "61s"},
        {"timeouts", "progress", "5s", "1d", "99ms", "86401s"},
        {"timeouts", "handshake", "100ms", "10m", "99ms", "601s"},
        {"timeouts", "prepare", "1s", "7d", "999ms", "604801s"},
        {"commit", "quorum", "0.000000001", "1", "0", "1.000000001"},
    };
    for (const Case& one : cases) {
      const auto line = [&](const char* value) {
        return std::string(one.section) + ": {" + one.key + ": " + value + "}\n";
      };
      CAPTURE(line(one.most));
      CHECK(taken(line(one.least)));
      CHECK(taken(line(one.most)));
      const std::string name = std::string(one.section) + "." + one.key + ": \"";
      CHECK(refused(line(one.below), name + one.below + "\" is not"));
      CHECK(refused(line(one.above), name + one.above + "\" is"));
    }
    CHECK(taken("limits: {memory_bytes: 32MiB}\n"));
    CHECK(taken("limits: {memory_bytes: 1TiB, child_window_bytes: 4GiB}\n"));
    CHECK(refused("limits: {memory_bytes: 33554431}\n", "limits.memory_bytes: \"33554431\" is not in 32MiB to 1TiB"));
    CHECK(refused("limits: {memory_bytes: 2TiB}\n", "is not in 32MiB to 1TiB"));
    CHECK(taken("timeouts: {dead: 10m, progress: 10m}\n"));
    CHECK(taken("timeouts: {heartbeat: 25ms, dead: 50ms}\n"));
    CHECK(refused("timeouts: {heartbeat: 10ms, dead: 49ms}\n", "timeouts.dead: \"49ms\" is not in 50ms to 10m"));
    CHECK(refused("timeouts: {dead: 601s}\n", "timeouts.dead: \"601s\" is not in 50ms to 10m"));
  }

  TEST_CASE("block size is a power of two from 4KiB to 4MiB, and one copy is all there is") {
    const auto with_image = [](const std::string& more) {
      return altered("dir: /srv/checkpoint", "dir: /srv/checkpoint, " + more);
    };
    CHECK(findings_of(with_image("block_size: 4KiB")) == "");
    CHECK(findings_of(with_image("block_size: 4MiB")) == "");
    CHECK(findings_of(with_image("block_size: 2KiB")) ==
          ":5:43: error: image.block_size: \"2KiB\" is not in 4KiB to 4MiB\n");
    CHECK(findings_of(with_image("block_size: 8MiB")) ==
          ":5:43: error: image.block_size: \"8MiB\" is not in 4KiB to 4MiB\n");
    CHECK(findings_of(with_image("block_size: 1MB")) ==
          ":5:43: error: image.block_size: must be a power of two, such as 1MiB\n");
    CHECK(findings_of(with_image("copies: 2")) == ":5:39: error: image.copies: \"2\" is not in 1 to 1\n");
  }

  TEST_CASE("C63: values that only look like numbers, flags and modes are refused with the key's name") {
    for (const std::string value : {"08443", "0644", "0x1F", "1e3", "-1", "7443.0", "yes", "4G", "\"\""}) {
      CAPTURE(value);
      CHECK(refused("limits: {max_children: " + value + "}\n", "limits.max_children: "));
    }
    CHECK(
        refused("timeouts: {heartbeat: 5}\n", "timeouts.heartbeat: \"5\" has no unit; write for example 5s or 500ms"));
    CHECK(refused("timeouts: {heartbeat: 10500us}\n", "timeouts.heartbeat: is not a whole number of milliseconds"));
    CHECK(refused("limits: {log_bytes: 64G}\n", "limits.log_bytes: \"64G\" has an unknown unit"));
    for (const std::string value : {"660", "0x1b0", "00660", "0668", "rw-rw----", "1660"}) {
      CAPTURE(value);
      CHECK(refused("admin: {mode: " + value + "}\n", "is not a file mode; write four octal digits, such as 0660"));
    }
    CHECK(refused("admin: {mode: 0666}\n", "admin.mode: lets every user of the host steer the daemon; end it in 0"));
    CHECK(config_of(std::string(least) + "admin: {mode: 0640}\n").admin.mode == 0640);
    for (const std::string port : {"08443", "0", "70000", "-1", "7443.0", "0x1F", ""}) {
      CAPTURE(port);
      CHECK(refused("listen: \"0.0.0.0:" + port + "\"\n", "listen: \"0.0.0.0:" + port + "\" has a port that"));
    }
    CHECK(refused("listen: 7443\n", "listen: \"7443\" is not an address"));
  }

  TEST_CASE("words come from their list") {
    CHECK(findings_of(altered("role: relay", "role: Relay")) ==
          ":2:7: error: role: \"Relay\" is not one of root or relay\n");
    CHECK(refused("log: {level: warning}\n", "log.level: \"warning\" is not one of trace, debug, info, warn or error"));
    CHECK(refused("log: {level: 5}\n", "log.level: \"5\" is not one of"));
    CHECK(refused("log: {format: text}\n", "log.format: \"text\" is not one of logfmt or json"));
    CHECK(refused("commit: {policy: most}\n", "commit.policy: \"most\" is not one of all or quorum"));
    CHECK(
        refused("commit: {on_timeout: wait}\n", "commit.on_timeout: \"wait\" is not one of abort or commit_if_quorum"));
    CHECK(refused("commit: {policy: [all]}\n", "commit.policy: must be a single value, not a list"));
  }

  TEST_CASE("unknown and doubled keys are errors, with the nearest known name") {
    CHECK(refused("lisen: 0.0.0.0:1\n", "unknown key \"lisen\" (did you mean \"listen\"?)"));
    CHECK(refused("limits: {io_thread: 2}\n", "unknown key \"io_thread\" (did you mean \"io_threads\"?)"));
    CHECK(refused("timeouts: {heartbeats: 1s}\n", "unknown key \"heartbeats\" (did you mean \"heartbeat\"?)"));
    CHECK(refused("node: hel-02\n", "key \"node\" appears twice (first at line 1)"));
    CHECK(refused("logs: {level: info}\n", "unknown key \"logs\" (did you mean \"log\"?)"));
    CHECK(refused("log: info\n", "log: must be a map of keys, not a single value"));
    CHECK(refused("log:\n", "log: has no value"));
  }

  TEST_CASE("the private content key is on the root and nowhere else") {
    CHECK(findings_of(altered("role: relay", "role: root")) ==
          ":7:14: error: content_key.private: is missing; the root signs what it sends and needs the private content "
          "key\n");
    CHECK(findings_of(altered("public: content.pub", "public: content.pub, private: content.key")) ==
          ":7:45: error: content_key.private: must not be on a relay; only the root may sign. Take the key off this "
          "host\n");
    // With the role misspelt nothing can be said about the key.
    CHECK(findings_of(altered("role: relay", "role: rooot")) ==
          ":2:7: error: role: \"rooot\" is not one of root or relay\n");
  }

  TEST_CASE("timeouts and limits must agree with each other") {
    CHECK(refused("timeouts: {heartbeat: 3s}\n", "timeouts.dead: must be at least twice timeouts.heartbeat (3s)"));
    CHECK(taken("timeouts: {heartbeat: 2500ms}\n"));
    CHECK(refused("timeouts: {dead: 1999ms}\n", "timeouts.dead: must be at least twice timeouts.heartbeat (1s)"));
    CHECK(refused("timeouts: {progress: 4s}\n", "timeouts.progress: must not be shorter than timeouts.dead (5s)"));
    CHECK(refused("limits: {child_window_bytes: 129MiB}\n", "is more than half of limits.memory_bytes (256MiB)"));
    CHECK(refused("limits: {memory_bytes: 32MiB, child_window_bytes: 17MiB}\n",
                  "is more than half of limits.memory_bytes (32MiB)"));
  }

  TEST_CASE("the state directory is not inside the image, however the paths are written") {
    for (const std::string dir : {"/srv/checkpoint", "/srv/checkpoint/", "/srv/checkpoint/state",
                                  "/srv/x/../checkpoint/./s", "../../srv/checkpoint/state"}) {
      CAPTURE(dir);
      CHECK(findings_of(altered("/var/lib/relayd", dir)) ==
            ":4:12: error: state_dir: lies inside image.dir; the two must be apart\n");
    }
    CHECK(findings_of(altered("/srv/checkpoint", "/srv/checkpoint/")) == "");
    CHECK(findings_of(altered("/var/lib/relayd", "/srv/checkpoint-state")) == "");
    CHECK(findings_of(altered("/var/lib/relayd", "/srv/..checkpoint")) == "");
    CHECK(findings_of(altered("dir: /srv/checkpoint}", "dir: /var/lib}")) ==
          ":4:12: error: state_dir: lies inside image.dir; the two must be apart\n");
  }

  TEST_CASE("a Unix socket's path fits into its address") {
    CHECK(taken("admin: {socket: /" + std::string(106, 's') + "}\n"));
    CHECK(refused("admin: {socket: /" + std::string(107, 's') + "}\n", "admin.socket: is longer than the 107 bytes"));
  }

  TEST_CASE("the effective configuration loads to the same again") {
    const RelaydConfig config = config_of(
        "node: trn-00\nrole: root\ntopology: \"/a b/\\\"q\\\"\\\\x: #.yaml\"\nstate_dir: 's t'\n"
        "image: {dir: \"im\\u00e9\", block_size: 64KiB}\n"
        "tls: {cert: a, key: b, ca: c, crl: d}\ncontent_key: {public: p, private: q}\nlisten: \"[::1]:7443\"\n"
        "admin: {socket: admin.sock, mode: 0600}\nlog: {level: trace, format: json}\n"
        "limits: {log_bytes: 10000001, memory_bytes: 64MB, child_window_bytes: 4MB, max_children: 7, handshakes: 9,\n"
        "         apply_threads: 3, encode_threads: 4, io_threads: 5}\n"
        "timeouts: {heartbeat: 101ms, dead: 90s, progress: 1h30m, handshake: 3s, prepare: 2d}\n"
        "commit: {policy: quorum, quorum: 33.3333333%, on_timeout: commit_if_quorum}\n");
    const std::string yaml = to_yaml(config);
    const RelaydConfig again = config_of(yaml);
    CHECK(to_yaml(again) == yaml);
    CHECK(again.topology == "/a b/\"q\"\\x: #.yaml");
    CHECK(again.image.dir == "/etc/relayd/im\xc3\xa9");
    CHECK(again.listen == config.listen);
    CHECK(again.limits.log_bytes == 10'000'001);
    CHECK(again.timeouts.progress == 90min);
    CHECK(again.commit.quorum == config.commit.quorum);
  }

  TEST_CASE("the effective configuration names every key of a plain one, in the order of the example") {
    CHECK(to_yaml(config_of(least)) ==
          "node: \"hel-01\"\nrole: relay\ntopology: \"/etc/relayd/topology.yaml\"\nstate_dir: \"/var/lib/relayd\"\n"
          "image:\n  dir: \"/srv/checkpoint\"\n  block_size: 1MiB\n  copies: 1\n"
          "tls:\n  cert: \"/etc/relayd/c.crt\"\n  key: \"/etc/relayd/c.key\"\n  ca: \"/etc/relayd/ca.crt\"\n"
          "content_key:\n  public: \"/etc/relayd/content.pub\"\n"
          "admin:\n  socket: \"/run/relayd/admin.sock\"\n  mode: 0660\n"
          "log:\n  level: info\n  format: logfmt\n"
          "limits:\n  log_bytes: 64GiB\n  memory_bytes: 256MiB\n  child_window_bytes: 8MiB\n  max_children: 32\n  "
          "handshakes: 64\n"
          "  apply_threads: 0\n  encode_threads: 0\n  io_threads: 2\n"
          "timeouts:\n  heartbeat: 1s\n  dead: 5s\n  progress: 30s\n  handshake: 5s\n  prepare: 10m\n"
          "commit:\n  policy: all\n  quorum: 0.95\n  on_timeout: abort\n");
  }

  TEST_CASE("the example file loads and states the defaults") {
    const LoadedConfig example = load_relayd_config(DELTARELAY_CONFIG_DIR "/relayd.example.yaml");
    CHECK(example.findings.text() == "");
    REQUIRE(example.config.has_value());
    RelaydConfig plain = config_of(least);
    plain.topology = example.config->topology;
    plain.tls = example.config->tls;
    plain.content_key = example.config->content_key;
    CHECK(to_yaml(*example.config) == to_yaml(plain));
    const LoadedTopology topology = load_topology(example.config->topology.parent_path() / "topology.example.yaml");
    REQUIRE(topology.model.has_value());
    CHECK(check_against_topology(*example.config, *topology.model).text() == "");
  }

  TEST_CASE("node and role must be what the topology makes of them") {
    const LoadedTopology topology = load_topology(DELTARELAY_CONFIG_DIR "/topology.example.yaml");
    REQUIRE(topology.model.has_value());
    const auto found = [&](const std::string& node, Role role) {
      RelaydConfig config = config_of(least);
      config.node = node;
      config.role = role;
      return check_against_topology(config, *topology.model).text();
    };
    CHECK(found("hel-01", Role::relay) == "");
    CHECK(found("trn-00", Role::root) == "");
    CHECK(found("hel-99", Role::relay) ==
          "/etc/relayd/relayd.yaml: error: node: \"hel-99\" is not a host of /etc/relayd/topology.yaml (did you mean "
          "\"hel-09\"?)\n");
    CHECK(found("hel-01", Role::root) ==
          "/etc/relayd/relayd.yaml: error: role: is root, but the root of /etc/relayd/topology.yaml is \"trn-00\"\n");
    CHECK(found("trn-00", Role::relay) ==
          "/etc/relayd/relayd.yaml: error: role: is relay, but \"trn-00\" is the root of /etc/relayd/topology.yaml\n");
  }

  TEST_CASE("a file that is no text, is empty or is not there is one finding") {
    CHECK(findings_of("") == ": error: the file: must be a map of keys, not nothing\n");
    CHECK(findings_of("\xff\xfe") == ":1:1: error: not valid UTF-8\n");
    const LoadedConfig none = load_relayd_config("/nonexistent/relayd.yaml");
    CHECK_FALSE(none.config.has_value());
    CHECK(none.findings.text() == "/nonexistent/relayd.yaml: error: cannot be opened: No such file or directory\n");
  }
}
