// Documents of a small fleet in the middle of a refit, as a root would send them: the same for every test.
#pragma once

#include <string>

#include "relay/admin/documents.hpp"

namespace deltarelay::relayctl::test {

using namespace relay::admin;  // NOLINT: the documents are what these tests are about

inline Time at(const char* text) {
  return parse_time_text(text).value();
}
inline Time noon() {
  return at("2026-01-31T12:00:00Z");
}

inline InFlight sample_refit() {
  InFlight refit;
  refit.version = Version{1843};
  refit.base = Version{1842};
  refit.phase = "DISTRIBUTING";
  refit.dense_bytes = 140'000'000'000;
  refit.scanned_bytes = refit.dense_bytes;
  refit.payload_bytes = 1'975'684'956;
  refit.changed_percent = 2.97;
  refit.elapsed_seconds = 14.2;
  RegionProgress near;
  near.name = "us-east";
  near.nodes_total = near.nodes_up = 96;
  near.received_percent = 71.4;
  near.applied_percent = 69.2;
  near.slowest = {"use-17", 68.9};
  near.rate_bytes_per_second = 387.5e6;
  RegionProgress far;
  far.name = "eu-north";
  far.nodes_total = 96;
  far.nodes_up = 95;
  far.received_percent = 58;
  far.applied_percent = 57.6;
  far.failed = 1;
  far.slowest = {"hel-41", 22};
  far.rate_bytes_per_second = 112.5e6;
  refit.regions = {near, far};
  return refit;
}

inline StatusDocument sample_status() {
  StatusDocument status;
  status.at = noon();
  status.mesh = "prod-llm70b";
  status.node = status.root = "trn-00";
  status.role = "root";
  status.epoch = Epoch{14};
  status.started = at("2026-01-25T08:55:00Z");
  status.plan = {Epoch{31}, "a91f3c2e"};
  status.health.level = "WARN";
  status.health.checks = {{"CHILD_SLOW", "WARN", "hel-41", "applies 41 MB/s, siblings 390 MB/s", "look at its disk"},
                          {"CERT_EXPIRES", "WARN", "hel-02", "its certificate ends in 6 days", "relayctl cert issue"}};
  status.committed = {Version{1842}, at("2026-01-31T11:57:49Z"), 190, 192, "quorum 0.95"};
  status.in_flight = sample_refit();
  status.problems = {{"CHILD_SLOW", "hel-41", "applies 41 MB/s, siblings 390 MB/s"},
                     {"DISK_FULL", "bom-07", "needs 1.9 GiB, free 0.7 GiB on /srv/ckpt"}};
  return status;
}

/// Healthy and at rest.
inline StatusDocument calm_status() {
  StatusDocument status = sample_status();
  status.health = {"OK", {}};
  status.committed.nodes_committed = 192;
  status.in_flight.reset();
  status.problems.clear();
  return status;
}

inline NodeRow sample_node(const char* name, const char* region, const char* parent, const char* state) {
  NodeRow row;
  row.name = name;
  row.region = region;
  row.role = *parent == '\0' ? "root" : "relay";
  row.planned_parent = row.actual_parent = parent;
  row.state = state;
  row.version = Version{1842};
  row.since = at("2026-01-31T11:59:46Z");
  return row;
}

inline NodeRow receiving(NodeRow row, std::uint64_t received, std::uint64_t applied, double rate) {
  row.receiving_version = Version{1843};
  row.received_frames = received;
  row.applied_frames = applied;
  row.total_frames = 200;
  row.received_bytes = received * 10'000'000;
  row.rate_bytes_per_second = rate;
  return row;
}

/// trn-00 feeds hel-01 (feeding hel-02, hel-05 and, adopted, hel-09) and use-01.
inline NodesDocument sample_nodes() {
  NodesDocument nodes;
  nodes.at = noon();
  nodes.mesh = "prod-llm70b";
  nodes.root = "trn-00";
  nodes.committed_version = Version{1842};
  nodes.in_flight_version = Version{1843};
  nodes.nodes = {receiving(sample_node("trn-00", "us-east", "", "RECEIVING"), 200, 0, 0),
                 receiving(sample_node("hel-01", "eu-north", "trn-00", "RECEIVING"), 120, 116, 118e6),
                 receiving(sample_node("hel-02", "eu-north", "hel-01", "RECEIVING"), 115, 114, 117e6),
                 sample_node("hel-05", "eu-north", "hel-01", "unreachable"),
                 receiving(sample_node("hel-09", "eu-north", "hel-05", "RECEIVING"), 114, 114, 96e6),
                 sample_node("use-01", "us-east", "trn-00", "SYNCING"),
                 receiving(sample_node("use-02", "us-east", "use-01", "FAILED"), 60, 40, 0)};
  std::uint32_t rank = 0;
  for (NodeRow& row : nodes.nodes) row.rank = rank++;
  nodes.nodes[3].actual_parent.clear();
  nodes.nodes[3].reason = {"PARENT_DOWN", "connection reset"};
  nodes.nodes[4].actual_parent = "hel-01";
  nodes.nodes[4].adopted = true;
  nodes.nodes[5].version = Version{1840};
  nodes.nodes[5].sync_blocks_done = 512;
  nodes.nodes[5].sync_blocks_total = 2048;
  nodes.nodes[6].reason = {"DISK_FULL", "needs 1.9 GiB, free 0.7 GiB on /srv/ckpt"};
  return nodes;
}

inline VersionRow sample_version() {
  VersionRow row;
  row.version = Version{1842};
  row.base = Version{1841};
  row.at = at("2026-01-31T11:57:49Z");
  row.dense_bytes = 140'000'000'000;
  row.payload_bytes = 1'652'000'000;
  row.changed_percent = 2.41;
  row.seconds = {9.25, 22.1, 14.05, 0.418};
  row.result = "committed";
  row.nodes_committed = 190;
  row.nodes_total = 192;
  row.left_out = {"bom-07", "hel-41"};
  return row;
}

inline VersionsDocument sample_versions() {
  VersionsDocument document;
  document.at = noon();
  VersionRow undone;
  undone.version = Version{1841};
  undone.base = Version{1840};
  undone.at = at("2026-01-31T11:20:00Z");
  undone.dense_bytes = 140'000'000'000;
  undone.payload_bytes = 400'000'000;
  undone.changed_percent = 0.6;
  undone.seconds = {9.0, 608.5, 600.0, 0};
  undone.result = "aborted";
  undone.why = "only 12 of 192 nodes prepared within 10m";
  undone.nodes_total = 192;
  VersionRow first;
  first.version = Version{1840};
  first.at = at("2026-01-25T08:55:03Z");
  first.result = "first";
  first.nodes_committed = first.nodes_total = 192;
  document.versions = {sample_version(), undone, first};
  return document;
}

inline RefitDocument sample_refit_document() {
  RefitDocument document;
  document.at = noon();
  document.refit = sample_refit();
  document.nodes_prepared = 3;
  document.nodes_failed = 1;
  document.nodes_total = 192;
  return document;
}

/// sample_refit_document() once the root has decided and every node followed.
inline RefitDocument closed_refit(const char* result, const char* why) {
  RefitDocument document = sample_refit_document();
  document.refit->phase = "CLOSED";
  document.result = result;
  document.why = why;
  document.nodes_committed = std::string(result) == "committed" ? 192 : 0;
  document.seconds = {9.25, 22.1, 14.05, 0.418};
  return document;
}

}  // namespace deltarelay::relayctl::test
