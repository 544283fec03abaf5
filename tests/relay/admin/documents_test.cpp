// Every document survives the way to JSON and back, and what is no document is refused with its place.
#include "relay/admin/documents.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace deltarelay;
using namespace deltarelay::relay::admin;

namespace {

constexpr Version largest_version{std::numeric_limits<std::uint64_t>::max()};
const Time sample_time =
    std::chrono::sys_days{std::chrono::year{2026} / 1 / 31} + std::chrono::milliseconds(50'527'250);

template <class Document>
std::string there_and_back(const Document& document) {
  const std::string text = to_json(document);
  Document read;
  CHECK(from_json(text, read) == "");
  CHECK(to_json(read) == text);
  return text;
}

InFlight sample_in_flight() {
  RegionProgress region;
  region.name = "eu-north";
  region.nodes_total = 96;
  region.nodes_up = 95;
  region.received_percent = 58.25;
  region.applied_percent = 58;
  region.prepared = 3;
  region.failed = 1;
  region.slowest.node = "hel-41";
  region.slowest.percent = 22.5;
  region.rate_bytes_per_second = 118e6;
  InFlight refit;
  refit.version = largest_version;
  refit.base = Version{1842};
  refit.phase = "DISTRIBUTING";
  refit.dense_bytes = std::numeric_limits<std::uint64_t>::max();
  refit.scanned_bytes = 1;
  refit.payload_bytes = 2;
  refit.changed_percent = 2.97;
  refit.elapsed_seconds = 14.125;
  refit.regions = {region, RegionProgress{}};
  return refit;
}

NodeRow sample_row() {
  NodeRow row;
  row.name = "knoten \"ü\" \\ \n\t";
  row.rank = 7;
  row.planned_parent = "hel-05";
  row.actual_parent = "hel-01";
  row.state = "FAILED";
  row.version = Version{1842};
  row.receiving_version = largest_version;
  row.received_frames = 1;
  row.applied_frames = 2;
  row.total_frames = 3;
  row.received_bytes = 4;
  row.sync_blocks_done = 5;
  row.sync_blocks_total = 6;
  row.rate_bytes_per_second = 0.5;
  row.reason.emplace();
  row.reason->code = "DISK_FULL";
  row.reason->text = "no space";
  row.adopted = true;
  row.since = sample_time;
  return row;
}

template <class Document>
std::string error_of(const std::string& text) {
  Document document;
  return from_json(text, document);
}

}  // namespace

TEST_SUITE("relay/admin/documents") {
  TEST_CASE("status goes there and back, with 64-bit numbers as strings and times in UTC") {
    StatusDocument document;
    document.at = sample_time;
    document.mesh = "prod";
    document.epoch = Epoch{14};
    document.started = sample_time;
    document.plan.epoch = Epoch{31};
    document.health.level = "WARN";
    document.health.checks.emplace_back();
    document.health.checks.back().code = "DISK_FULL";
    document.committed.version = largest_version;
    document.committed.at = sample_time;
    document.in_flight = sample_in_flight();
    document.problems.emplace_back();
    const std::string text = there_and_back(document);
    CHECK(text.find("\"schema\":\"deltarelay.status/1\"") != std::string::npos);
    CHECK(text.find("\"version\":\"18446744073709551615\"") != std::string::npos);
    CHECK(text.find("\"at\":\"2026-01-31T14:02:07.250Z\"") != std::string::npos);
    StatusDocument read;
    REQUIRE(from_json(text, read) == "");
    CHECK(read.committed.version == largest_version);
    REQUIRE(read.in_flight);
    CHECK(read.in_flight->regions.front().slowest.percent == 22.5);
    CHECK(read.in_flight->dense_bytes == std::numeric_limits<std::uint64_t>::max());
  }

  TEST_CASE("every other document goes there and back") {
    NodesDocument nodes;
    nodes.nodes = {sample_row(), NodeRow{}};
    there_and_back(nodes);
    NodesDocument read;
    REQUIRE(from_json(to_json(nodes), read) == "");
    CHECK(read.nodes.front().name == sample_row().name);
    CHECK_FALSE(read.nodes.back().reason);
    VersionsDocument versions;
    versions.versions.resize(2);
    versions.versions.front().left_out = {"a", "b"};
    there_and_back(versions);
    there_and_back(VersionDocument{});
    RefitDocument refit;
    there_and_back(refit);
    refit.refit = sample_in_flight();
    refit.left_out = {"hel-04"};
    there_and_back(refit);
    PublishRequest publish;
    publish.dir = "/srv/export";
    there_and_back(publish);
    publish.version = Version{9};
    publish.dry_run = true;
    there_and_back(publish);
    there_and_back(PublishDocument{});
    AbortRequest abort;
    abort.version = Version{9};
    there_and_back(abort);
    there_and_back(AbortDocument{});
    there_and_back(VerifyRequest{});
    VerifyDocument verify;
    verify.nodes.resize(1);
    verify.nodes[0].damaged.push_back({"model.norm", 3});
    verify.began = verify.at;
    there_and_back(verify);
    ErrorDocument error;
    error.try_next = "again";
    CHECK(there_and_back(error).find("\"try\":\"again\"") != std::string::npos);
  }

  TEST_CASE("unknown members are passed over and missing ones keep their defaults") {
    PublishRequest request;
    CHECK(from_json(R"({"dir":"/a","later":{"x":[1,2]},"version":null})", request) == "");
    CHECK(request.dir == "/a");
    CHECK_FALSE(request.version);
    CHECK_FALSE(request.dry_run);
  }

  TEST_CASE("what is wrong is named with its path") {
    CHECK(error_of<AbortRequest>("nonsense").find("not JSON") == 0);
    CHECK(error_of<AbortRequest>("") != "");
    CHECK(error_of<AbortRequest>("[1]") == "not a JSON object");
    CHECK(error_of<AbortRequest>(R"({"version":9})") == "version: not a 64-bit number in a string");
    for (const char* version : {"", " 9", "9 ", "-1", "+9", "0x9", "18446744073709551616", "9.0"}) {
      CAPTURE(version);
      CHECK(error_of<AbortRequest>(std::string(R"({"version":")") + version + "\"}") != "");
    }
    CHECK(error_of<PublishRequest>(R"({"dir":7})") == "dir: not a string");
    CHECK(error_of<PublishRequest>(R"({"dry_run":"yes"})") == "dry_run: neither true nor false");
    const std::string head = R"({"schema":"deltarelay.nodes/1",)";
    CHECK(error_of<NodesDocument>(head + R"("nodes":{}})") == "nodes: not a list");
    CHECK(error_of<NodesDocument>(head + R"("nodes":[{},{"rank":-1}]})") ==
          "nodes[1].rank: not a whole number in range");
    CHECK(error_of<NodesDocument>(head + R"("nodes":[7]})") == "nodes[0]: not an object");
    CHECK(error_of<NodesDocument>(head + R"("at":"yesterday"})").find("at: not a time") == 0);
    CHECK(error_of<NodesDocument>("{}") == "schema: missing, expected deltarelay.nodes/1");
    CHECK(error_of<NodesDocument>(R"({"schema":"deltarelay.nodes/2"})").find("schema: is deltarelay.nodes/2") == 0);
  }

  TEST_CASE("every truncation of a document is refused") {
    NodesDocument nodes;
    nodes.nodes = {sample_row()};
    const std::string text = to_json(nodes);
    for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
      CAPTURE(bytes);
      REQUIRE(error_of<NodesDocument>(text.substr(0, bytes)) != "");
    }
  }

  TEST_CASE("times are read as they are written, and nothing else is a time") {
    for (const Time at : {Time{}, sample_time, sample_time + std::chrono::milliseconds(750)}) {
      CHECK(parse_time_text(time_text(at)) == at);
    }
    for (const char* text : {"", "2026-01-31", "2026-02-30T00:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T14:02:07",
                             "2026-01-31T14:02:07+01:00", "2026-01-31T14:02:07.25Z", "2026-01-31T14:02:07.250Zz",
                             "2026-01-31 14:02:07Z"}) {
      CAPTURE(text);
      CHECK_FALSE(parse_time_text(text));
    }
  }

  TEST_CASE("indented JSON is for people: plain numbers, and text that is no JSON as it is") {
    CHECK(indented_json(R"({"a":[],"b":{"c":2.97,"d":[1,"x"]}})") ==
          "{\n  \"a\": [],\n  \"b\": {\n    \"c\": 2.97,\n    \"d\": [\n      1,\n      \"x\"\n    ]\n  }\n}\n");
    CHECK(indented_json("no json") == "no json");
  }
}
