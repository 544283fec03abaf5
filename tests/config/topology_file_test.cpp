// topology.yaml: every mistake named with its place, and a model that keeps what the file says.
#include "config/topology_file.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace deltarelay::config;
using namespace deltarelay::topology;

namespace {

constexpr const char* head =
    "mesh: m\n"                                         // line 1
    "regions:\n"                                        // line 2
    "  - {name: a, lan_rate: 10Gbps}\n"                 // line 3
    "  - {name: b, lan_rate: 1Gbps}\n"                  // line 4
    "links:\n"                                          // line 5
    "  - {from: a, to: b, rate: 500Mbps, rtt: 90ms}\n"  // line 6
    "root: r\n"                                         // line 7
    "hosts:\n"                                          // line 8
    "  - {name: r, region: a, address: \"r:1\"}\n"      // line 9
    "  - {name: b1, region: b, address: \"b1:1\"}\n";   // line 10

std::string findings_of(const std::string& text) {
  return parse_topology("t.yaml", text).findings.text();
}
/// The findings about `head` with these lines after it.
std::string with(const std::string& more) {
  return findings_of(head + more);
}

Model model_of(const std::string& text) {
  const LoadedTopology loaded = parse_topology("t.yaml", text);
  CHECK(loaded.findings.text() == "");
  REQUIRE(loaded.model.has_value());
  REQUIRE(loaded.plan.has_value());
  return *loaded.model;
}

/// `head` with one piece replaced by another.
std::string altered(std::string_view piece, std::string_view by) {
  std::string text = head;
  const auto at = text.find(piece);
  REQUIRE(at != std::string::npos);
  return text.replace(at, piece.size(), by);
}

}  // namespace

TEST_SUITE("config/topology_file") {
  TEST_CASE("what the file says is in the model; what it leaves out has its default") {
    const Model model = model_of(
        "mesh: prod\nplan_epoch: 31\n"
        "regions:\n  - {name: a, lan_rate: 10Gbps, rtt: 200us}\n  - {name: b, lan_rate: 8Mbps}\n"
        "links: [{from: a, to: b, rate: 1Gbps, rtt: 90ms, cost: 2.5, transit: false}]\n"
        "hosts:\n"
        "  - {name: r, region: a, address: \"[2001:db8::1]:7443\", uplink: 25Gbps, downlink: 5Gbps, max_children: 3, "
        "labels: {rack: a1, az: x}}\n"
        "  - {name: \"h-{08..11}\", region: b, address: \"10.0.0.{8..11}:7443\"}\n"
        "root: r\nstandby: [h-09, h-08]\n"
        "limits: {max_children: 5, max_candidates: 4}\n"
        "refit: {size: 2TB, change: 1.5%}\n"
        "rates: {encode: 10GB/s, apply: 20GB/s}\n");
    CHECK(model.mesh == "prod");
    CHECK(model.plan_epoch == 31);
    REQUIRE(model.regions.size() == 2);
    CHECK(model.regions[0].lan_rate == Rate{1'250'000'000});
    CHECK(model.regions[0].rtt == std::chrono::microseconds(200));
    CHECK(model.regions[1].rtt == std::chrono::microseconds(500));
    REQUIRE(model.links.size() == 1);
    CHECK(model.links[0].rate == Rate{125'000'000});
    CHECK(model.links[0].rtt == std::chrono::milliseconds(90));
    CHECK(model.links[0].cost == 2.5);
    CHECK_FALSE(model.links[0].transit);
    REQUIRE(model.hosts.size() == 5);
    const Host& root = model.hosts[0];
    CHECK(root.address == Address{"2001:db8::1", 7443});
    CHECK(root.uplink == Rate{3'125'000'000});
    CHECK(root.downlink == Rate{625'000'000});
    CHECK(root.max_children == 3);
    CHECK(root.labels == std::vector<std::pair<std::string, std::string>>{{"az", "x"}, {"rack", "a1"}});
    const Host& ranged = model.hosts[3];
    CHECK(ranged.name == "h-10");
    CHECK(ranged.address == Address{"10.0.0.10", 7443});
    CHECK(ranged.region == RegionIndex{1});
    CHECK(ranged.uplink == Rate{1'000'000});
    CHECK(ranged.downlink == Rate{1'000'000});
    CHECK(ranged.max_children == 5);
    CHECK(model.root == HostIndex{0});
    CHECK(model.standby == std::vector<HostIndex>{HostIndex{2}, HostIndex{1}});
    CHECK(model.limits.max_candidates == 4);
    CHECK(model.refit.checkpoint_bytes == 2'000'000'000'000);
    CHECK(model.refit.change == doctest::Approx(0.015));
    CHECK(model.rates.encode == Rate{10'000'000'000});
    CHECK(model.rates.apply == Rate{20'000'000'000});

    const Model plain = model_of(head);
    CHECK(plain.plan_epoch == 0);
    CHECK(plain.limits.max_children == 16);
    CHECK(plain.limits.max_candidates == 8);
    CHECK(plain.refit.checkpoint_bytes == 140'000'000'000);
    CHECK(plain.links[0].transit);
  }

  TEST_CASE("a range is one entry and many hosts") {
    const Model model = model_of(
        std::string(head) + "  - {name: \"rollout-{000..127}\", region: b, address: \"rollout-{000..127}.b:7443\"}\n");
    REQUIRE(model.hosts.size() == 130);
    CHECK(model.hosts[2].name == "rollout-000");
    CHECK(model.hosts[129].name == "rollout-127");
    CHECK(model.hosts[129].address == Address{"rollout-127.b", 7443});
  }

  TEST_CASE("unknown keys are named with the nearest known one, at every level") {
    CHECK(findings_of(altered("root: r", "rot: r")) ==
          "t.yaml:1:1: error: key \"root\" is missing\n"
          "t.yaml:7:1: error: unknown key \"rot\" (did you mean \"root\"?)\n");
    CHECK(with("  - {name: x, region: b, address: \"x:1\", upllink: 1Gbps}\n") ==
          "t.yaml:11:42: error: unknown key \"upllink\" (did you mean \"uplink\"?)\n");
    CHECK(findings_of(altered("rtt: 90ms", "rtt: 90ms, transitt: true")) ==
          "t.yaml:6:48: error: unknown key \"transitt\" (did you mean \"transit\"?)\n");
    CHECK(findings_of(altered("lan_rate: 1Gbps", "lan_rate: 1Gbps, hosts: 5")) ==
          "t.yaml:4:32: error: unknown key \"hosts\"\n");
    CHECK(with("limits: {max_childs: 3}\n") == "t.yaml:11:10: error: unknown key \"max_childs\"\n");
    CHECK(with("refit: {Size: 3GB}\n") == "t.yaml:11:9: error: unknown key \"Size\" (did you mean \"size\"?)\n");
    CHECK(with("rates: {aply: 3GB/s}\n") == "t.yaml:11:9: error: unknown key \"aply\" (did you mean \"apply\"?)\n");
  }

  TEST_CASE("a name given twice is named with the line of the first") {
    CHECK(with("  - {name: b1, region: b, address: \"x:1\"}\n") ==
          "t.yaml:11:12: error: node \"b1\" appears twice (first at line 10)\n");
    CHECK(with("  - {name: \"b{0..2}\", region: b, address: \"b{0..2}.x:1\"}\n") ==
          "t.yaml:11:12: error: node \"b1\" appears twice (first at line 10)\n");
    CHECK(findings_of(altered("name: b, lan_rate: 1Gbps}", "name: a, lan_rate: 1Gbps}"))
              .find("t.yaml:4:12: error: region \"a\" appears twice (first at line 3)\n") != std::string::npos);
    CHECK(findings_of(altered("rtt: 90ms}", "rtt: 90ms}\n  - {from: a, to: b, rate: 1Gbps, rtt: 1ms}")) ==
          "t.yaml:7:19: error: link.to: link \"a\" to \"b\" appears twice (first at line 6)\n");
    CHECK(with("root: r\n") == "t.yaml:11:1: error: key \"root\" appears twice (first at line 7)\n");
    // The other way is another link.
    CHECK(findings_of(altered("rtt: 90ms}", "rtt: 90ms}\n  - {from: b, to: a, rate: 1Gbps, rtt: 1ms}")) == "");
  }

  TEST_CASE("two hosts have two addresses, also in different case and in a range") {
    CHECK(with("  - {name: b2, region: b, address: \"b1:1\"}\n") ==
          "t.yaml:11:36: error: host.address: hosts \"b1\" and \"b2\" both have b1:1\n");
    CHECK(with("  - {name: b2, region: b, address: \"B1:1\"}\n") ==
          "t.yaml:11:36: error: host.address: hosts \"b1\" and \"b2\" both have B1:1\n");
    CHECK(with("  - {name: b2, region: b, address: \"b1:2\"}\n") == "");
    CHECK(with("  - {name: \"x{1..3}\", region: b, address: \"x:1\"}\n") ==
          "t.yaml:11:43: error: host.address: needs a range as well, or 3 hosts have one address\n");
    CHECK(with("  - {name: \"x{1..3}\", region: b, address: \"x{1..4}:1\"}\n") ==
          "t.yaml:11:43: error: host.address: names 4 addresses for 3 hosts\n");
    CHECK(with("  - {name: x1, region: b, address: \"x{1..4}:1\"}\n") ==
          "t.yaml:11:36: error: host.address: names 4 addresses for 1 hosts\n");
  }

  TEST_CASE("an address is a host and a port") {
    CHECK(with("  - {name: x, region: b, address: x}\n") ==
          "t.yaml:11:35: error: host.address: \"x\" is not an address; write host:port, or [IPv6]:port\n");
    CHECK(with("  - {name: x, region: b, address: \"x:0\"}\n") ==
          "t.yaml:11:35: error: host.address: \"x:0\" has a port that is not in 1 to 65535\n");
    CHECK(with("  - {name: \"x{1..9}\", region: b, address: \"x:{65530..65538}\"}\n") ==
          "t.yaml:11:43: error: host.address: \"x:65536\" has a port that is not in 1 to 65535\n");
    CHECK(with("  - {name: x, region: b}\n") == "t.yaml:11:5: error: key \"host.address\" is missing\n");
  }

  TEST_CASE("names are those that a certificate and a path can carry") {
    for (const std::string name : {"B1", "b_1", "-b", "b-", "b 1", "b/1", "../x", ".", "b\xc3\xb6", "b:1"}) {
      CAPTURE(name);
      CHECK(with("  - {name: \"" + name + "\", region: b, address: \"x:1\"}\n")
                .find("is not a name; use lower-case letters") != std::string::npos);
    }
    CHECK(with("  - {name: " + std::string(64, 'n') + ", region: b, address: \"x:1\"}\n") == "");
    CHECK(with("  - {name: " + std::string(65, 'n') + ", region: b, address: \"x:1\"}\n").find("is not a name") !=
          std::string::npos);
    CHECK(findings_of(altered("mesh: m", "mesh: M")).rfind("t.yaml:1:7: error: mesh: \"M\" is not a name", 0) == 0);
    CHECK(findings_of(altered("name: b,", "name: \"b\\e[0m\","))
              .find("t.yaml:4:12: error: region.name: contains a control character") != std::string::npos);
  }

  TEST_CASE("regions must exist, and each must be reached and have hosts") {
    CHECK(with("  - {name: x, region: bb, address: \"x:1\"}\n") ==
          "t.yaml:11:23: error: region: unknown region \"bb\"\n");
    CHECK(findings_of(altered("to: b", "to: c")) == "t.yaml:6:19: error: region of to: unknown region \"c\"\n");
    CHECK(findings_of(altered("from: a, to: b", "from: a, to: a")) ==
          "t.yaml:6:19: error: link.to: joins region \"a\" to itself; lan_rate of the region says that\n");
    CHECK(findings_of(altered("lan_rate: 1Gbps}", "lan_rate: 1Gbps}\n  - {name: c, lan_rate: 1Gbps}")) ==
          "t.yaml:5:5: error: region \"c\" has no hosts\n");
    CHECK(findings_of(altered("links:\n  - {from: a, to: b, rate: 500Mbps, rtt: 90ms}\n", "")) ==
          "t.yaml:4:5: error: no path of links leads from the root's region to region \"b\"\n");
    CHECK(findings_of("mesh: m\nroot: r\nhosts: [{name: r, region: a, address: \"r:1\"}]\n") ==
          "t.yaml:1:1: error: regions: at least one is needed\n"
          "t.yaml:3:27: error: region: unknown region \"a\"\n");
  }

  TEST_CASE("a region that may not feed all its hosts is a finding, and so is what lies behind it only once") {
    const std::string text =
        "mesh: m\nregions:\n  - {name: a, lan_rate: 1Gbps}\n  - {name: b, lan_rate: 1Gbps}\n"
        "links: [{from: a, to: b, rate: 1Gbps, rtt: 1ms}]\nroot: r\nhosts:\n"
        "  - {name: r, region: a, address: \"r:1\", max_children: 1}\n"
        "  - {name: \"x-{1..3}\", region: a, address: \"x-{1..3}:1\", max_children: 0}\n"
        "  - {name: \"y-{1..3}\", region: b, address: \"y-{1..3}:1\"}\n";
    CHECK(findings_of(text) ==
          "t.yaml:3:5: error: the hosts of region \"a\" may have 1 children together, and 4 have to be fed from head "
          "\"r\"; raise "
          "max_children\n");
  }

  TEST_CASE("root and standbys are hosts, different ones") {
    CHECK(findings_of(altered("root: r", "root: b2")) ==
          "t.yaml:7:7: error: root: unknown host \"b2\" (did you mean \"b1\"?)\n");
    CHECK(with("standby: [b1, b1]\n") == "t.yaml:11:15: error: standby \"b1\" appears twice (first at line 11)\n");
    CHECK(with("standby: [r]\n") == "t.yaml:11:11: error: standby: \"r\" is the root\n");
    CHECK(with("standby: [zzz]\n") == "t.yaml:11:11: error: standby: unknown host \"zzz\"\n");
    CHECK(with("standby: b1\n") == "t.yaml:11:10: error: standby: must be a list, not a single value\n");
    CHECK(with("standby: [[b1], ~]\n") ==
          "t.yaml:11:11: error: standby: must be a list of host names\n"
          "t.yaml:11:17: error: standby: must be a list of host names\n");
  }

  TEST_CASE("each value has its bounds") {
    struct Case {
      std::string line, message;
    };
    const Case cases[] = {
        {"plan_epoch: -1\n", "plan_epoch: \"-1\" is not a plain decimal number"},
        {"plan_epoch: 9223372036854775808\n", "is not in 0 to 9223372036854775807"},
        {"limits: {max_children: 0}\n", "limits.max_children: \"0\" is not in 1 to 4096"},
        {"limits: {max_children: 4097}\n", "limits.max_children: \"4097\" is not in 1 to 4096"},
        {"limits: {max_candidates: 1}\n", "limits.max_candidates: \"1\" is not in 2 to 64"},
        {"refit: {size: 0}\n", "refit.size: \"0\" is not in 1B to 1024PiB"},
        {"refit: {change: 0}\n", "refit.change: \"0\" is not in 0.000000001 to 1"},
        {"refit: {change: 101%}\n", "refit.change: \"101%\" is more than 100%"},
        {"rates: {encode: 0B/s}\n", "rates.encode: \"0B/s\" is not in 1B/s to 1PB/s"},
        {"rates: {apply: 2PB/s}\n", "rates.apply: \"2PB/s\" is not in 1B/s to 1PB/s"},
        {"limits: 5\n", "limits: must be a map of keys, not a single value"},
        {"refit:\n", "refit: has no value"},
    };
    for (const Case& one : cases) {
      CAPTURE(one.line);
      const std::string found = with(one.line);
      CAPTURE(found);
      CHECK(found.find(one.message) != std::string::npos);
      CHECK(found.rfind("t.yaml:11:", 0) == 0);
      CHECK(std::count(found.begin(), found.end(), '\n') == 1);
    }
    CHECK(findings_of(altered("rtt: 90ms", "rtt: 11s")) ==
          "t.yaml:6:42: error: link.rtt: \"11s\" is not in 0s to 10s\n");
    CHECK(findings_of(altered("rate: 500Mbps", "rate: 7bps")) ==
          "t.yaml:6:28: error: link.rate: \"7bps\" is not in 1B/s to 1PB/s\n");
    CHECK(findings_of(altered(", rtt: 90ms", "")) == "t.yaml:6:5: error: key \"link.rtt\" is missing\n");
    CHECK(findings_of(altered(", lan_rate: 1Gbps", "")) == "t.yaml:4:5: error: key \"region.lan_rate\" is missing\n");
    CHECK(findings_of(altered("rtt: 90ms", "rtt: 90ms, cost: -1"))
              .find("link.cost: \"-1\" is not a plain decimal number") != std::string::npos);
    CHECK(findings_of(altered("rtt: 90ms", "rtt: 90ms, transit: yes")) ==
          "t.yaml:6:57: error: link.transit: \"yes\" is not a flag here; write true or false\n");
  }

  TEST_CASE("all mistakes of a file are found in one run, in file order") {
    CHECK(findings_of("mesh: M\nmesh: n\nregions:\n  - {name: a, lan_rate: 10}\nroot: x\nhosts:\n"
                      "  - {name: r, region: a, address: r}\n  - nonsense\n  - {region: a}\nbogus: 1\n") ==
          "t.yaml:1:7: error: mesh: \"M\" is not a name; use lower-case letters, digits, '-' and '.', at most 64\n"
          "t.yaml:2:1: error: key \"mesh\" appears twice (first at line 1)\n"
          "t.yaml:4:25: error: region.lan_rate: \"10\" is not a rate; write for example 10Gbps (bits) or 381MB/s "
          "(bytes)\n"
          "t.yaml:5:7: error: root: unknown host \"x\"\n"
          "t.yaml:7:35: error: host.address: \"r\" is not an address; write host:port, or [IPv6]:port\n"
          "t.yaml:8:5: error: host: must be a map of keys, not a single value\n"
          "t.yaml:9:5: error: key \"host.name\" is missing\n"
          "t.yaml:9:5: error: key \"host.address\" is missing\n"
          "t.yaml:10:1: error: unknown key \"bogus\"\n");
    CHECK(findings_of("") == "t.yaml: error: the file: must be a map of keys, not nothing\n");
    CHECK(findings_of("[]") == "t.yaml:1:1: error: the file: must be a map of keys, not a list\n");
  }

  TEST_CASE("C64: a file of a megabyte costs neither gigabytes nor minutes") {
    CHECK(with("  - {name: \"" + std::string(1'000'000, 'n') + "{0..9999}\", region: b, address: \"x:{1..10000}\"}\n")
              .find("is longer than 256 bytes") != std::string::npos);
    CHECK(with("  - {name: \"n{0..9999}\", region: b, address: \"x:{1..10000}\"}\n") ==
          "t.yaml:11:12: error: host.name: brings the hosts to more than 10000\n");
    CHECK(with("  - {name: \"n{0..9997}\", region: b, address: \"x:{1..9998}\"}\n") == "");
    std::string ranges;
    for (int i = 0; i < 5000; ++i) ranges += "  - {name: \"N{0..9000}\", region: b, address: \"x:{1..9001}\"}\n";
    const std::string found = with(ranges);
    CHECK(found.rfind("t.yaml:11:12: error: host.name: \"N0\" is not a name", 0) == 0);
    CHECK(found.find("t.yaml:12:12: error: host.name: brings the hosts to more than 10000\n") != std::string::npos);
    std::string labels = "  - {name: x, region: b, address: \"x:1\", labels: {k0: v";
    for (int i = 1; i < 90'000; ++i) labels.append(", k").append(std::to_string(i)).append(": v");
    CHECK(with(labels + "}}\n") == "t.yaml:11:50: error: host.labels: more than 16 entries\n");
    CHECK(with("  - {name: x, region: b, address: \"x:1\", labels: {k: " + std::string(129, 'v') + "}}\n") ==
          "t.yaml:11:54: error: host.labels.k: is longer than 128 bytes\n");
    std::string hosts;
    for (int i = 0; i < 10'001; ++i) hosts += "  - {}\n";
    CHECK(with(hosts) ==
          "t.yaml:7:7: error: root: unknown host \"r\"\n"
          "t.yaml:9:3: error: hosts: more than 10000 entries\n");
  }

  TEST_CASE("labels have plain names and values that can be shown") {
    const auto with_label = [](const std::string& label) {
      return with("  - {name: x, region: b, address: \"x:1\", labels: {" + label + "}}\n");
    };
    CHECK(with_label("topology.kubernetes.io/zone: us-east-1a, Rack_7: \"7\"") == "");
    CHECK(with_label("\"a\\nb\": 1") ==
          "t.yaml:11:51: error: host.labels: \"a\\x0ab\" is not a label's name; use letters, digits, '-', '_', '.' and "
          "'/', at most "
          "64\n");
    CHECK(with_label(std::string(65, 'k') + ": 1").find("is not a label's name") != std::string::npos);
    CHECK(with_label("k: \"\\e[2J\"") == "t.yaml:11:54: error: host.labels.k: contains a control character\n");
    CHECK(with_label("k: [1]") == "t.yaml:11:54: error: host.labels.k: must be a single value, not a list\n");
  }

  TEST_CASE("the files that come with the product load and are planned") {
    const LoadedTopology example = load_topology(DELTARELAY_CONFIG_DIR "/topology.example.yaml");
    CHECK(example.findings.text() == "");
    REQUIRE(example.plan.has_value());
    CHECK(example.plan->nodes().size() == 50);
    CHECK(example.plan->mesh() == "prod-llm70b");
    CHECK(example.plan->root().name == "trn-00");
    const LoadedTopology reference = load_topology(DELTARELAY_CONFIG_DIR "/reference-1t.yaml");
    CHECK(reference.findings.text() == "");
    REQUIRE(reference.plan.has_value());
    CHECK(reference.plan->nodes().size() == 128);
  }

  TEST_CASE("the example states the defaults that it names") {
    const LoadedTopology example = load_topology(DELTARELAY_CONFIG_DIR "/topology.example.yaml");
    REQUIRE(example.model.has_value());
    const Model defaults;
    CHECK(example.model->limits.max_children == defaults.limits.max_children);
    CHECK(example.model->limits.max_candidates == defaults.limits.max_candidates);
    CHECK(example.model->refit.checkpoint_bytes == defaults.refit.checkpoint_bytes);
    CHECK(example.model->refit.change == doctest::Approx(defaults.refit.change));
    CHECK(example.model->rates.encode == defaults.rates.encode);
    CHECK(example.model->rates.apply == defaults.rates.apply);
  }

  TEST_CASE("a file that is not there is a finding, not an exception") {
    const LoadedTopology loaded = load_topology("/nonexistent/topology.yaml");
    CHECK_FALSE(loaded.model.has_value());
    CHECK(loaded.findings.text() == "/nonexistent/topology.yaml: error: cannot be opened: No such file or directory\n");
  }
}
