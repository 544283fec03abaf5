// The member names of every document, once, for writing and reading alike.
//
// `describe(f, d)` calls f(name, member) for each member of `d`; `d` may be const. Internal to documents.cpp.
#pragma once

#include <concepts>
#include <type_traits>

#include "relay/admin/documents.hpp"

namespace deltarelay::relay::admin {

template <class T, class Document>
concept Of = std::same_as<std::remove_const_t<T>, Document>;

template <class F, Of<PlanStamp> D>
void describe(F& f, D& d) {
  f("epoch", d.epoch);
  f("digest", d.digest);
}

template <class F, Of<Check> D>
void describe(F& f, D& d) {
  f("code", d.code);
  f("level", d.level);
  f("node", d.node);
  f("text", d.text);
  f("fix", d.fix);
}

template <class F, Of<Health> D>
void describe(F& f, D& d) {
  f("level", d.level);
  f("checks", d.checks);
}

template <class F, Of<Committed> D>
void describe(F& f, D& d) {
  f("version", d.version);
  f("at", d.at);
  f("nodes_committed", d.nodes_committed);
  f("nodes_total", d.nodes_total);
  f("policy", d.policy);
}

template <class F, Of<SlowestNode> D>
void describe(F& f, D& d) {
  f("node", d.node);
  f("percent", d.percent);
}

template <class F, Of<RegionProgress> D>
void describe(F& f, D& d) {
  f("name", d.name);
  f("nodes_total", d.nodes_total);
  f("nodes_up", d.nodes_up);
  f("received_percent", d.received_percent);
  f("applied_percent", d.applied_percent);
  f("prepared", d.prepared);
  f("failed", d.failed);
  f("slowest", d.slowest);
  f("rate_bytes_per_second", d.rate_bytes_per_second);
}

template <class F, Of<AwaitedNode> D>
void describe(F& f, D& d) {
  f("node", d.node);
  f("state", d.state);
}

template <class F, Of<Awaited> D>
void describe(F& f, D& d) {
  f("nodes", d.nodes);
  f("first", d.first);
  f("timeout_seconds", d.timeout_seconds);
}

template <class F, Of<Syncing> D>
void describe(F& f, D& d) {
  f("nodes", d.nodes);
  f("undoing", d.undoing);
  f("done_percent", d.done_percent);
  f("slowest", d.slowest);
}

template <class F, Of<InFlight> D>
void describe(F& f, D& d) {
  f("version", d.version);
  f("base", d.base);
  f("phase", d.phase);
  f("dense_bytes", d.dense_bytes);
  f("scanned_bytes", d.scanned_bytes);
  f("payload_bytes", d.payload_bytes);
  f("changed_percent", d.changed_percent);
  f("elapsed_seconds", d.elapsed_seconds);
  f("regions", d.regions);
  f("awaited", d.awaited);
}

template <class F, Of<Problem> D>
void describe(F& f, D& d) {
  f("code", d.code);
  f("node", d.node);
  f("text", d.text);
}

template <class F, Of<StatusDocument> D>
void describe(F& f, D& d) {
  f("at", d.at);
  f("mesh", d.mesh);
  f("node", d.node);
  f("role", d.role);
  f("root", d.root);
  f("epoch", d.epoch);
  f("started", d.started);
  f("plan", d.plan);
  f("health", d.health);
  f("committed", d.committed);
  f("in_flight", d.in_flight);
  f("syncing", d.syncing);
  f("problems", d.problems);
}

template <class F, Of<Reason> D>
void describe(F& f, D& d) {
  f("code", d.code);
  f("text", d.text);
}

template <class F, Of<NodeRow> D>
void describe(F& f, D& d) {
  f("name", d.name);
  f("region", d.region);
  f("role", d.role);
  f("rank", d.rank);
  f("planned_parent", d.planned_parent);
  f("actual_parent", d.actual_parent);
  f("state", d.state);
  f("version", d.version);
  f("receiving_version", d.receiving_version);
  f("undoing_version", d.undoing_version);
  f("received_frames", d.received_frames);
  f("applied_frames", d.applied_frames);
  f("total_frames", d.total_frames);
  f("received_bytes", d.received_bytes);
  f("sync_blocks_done", d.sync_blocks_done);
  f("sync_blocks_total", d.sync_blocks_total);
  f("rate_bytes_per_second", d.rate_bytes_per_second);
  f("reason", d.reason);
  f("adopted", d.adopted);
  f("since", d.since);
}

template <class F, Of<NodesDocument> D>
void describe(F& f, D& d) {
  f("at", d.at);
  f("mesh", d.mesh);
  f("root", d.root);
  f("committed_version", d.committed_version);
  f("in_flight_version", d.in_flight_version);
  f("nodes", d.nodes);
}

template <class F, Of<PhaseSeconds> D>
void describe(F& f, D& d) {
  f("encode", d.encode);
  f("distribute", d.distribute);
  f("prepare", d.prepare);
  f("commit", d.commit);
}

template <class F, Of<VersionRow> D>
void describe(F& f, D& d) {
  f("version", d.version);
  f("base", d.base);
  f("at", d.at);
  f("dense_bytes", d.dense_bytes);
  f("payload_bytes", d.payload_bytes);
  f("changed_percent", d.changed_percent);
  f("seconds", d.seconds);
  f("result", d.result);
  f("why", d.why);
  f("nodes_committed", d.nodes_committed);
  f("nodes_total", d.nodes_total);
  f("left_out", d.left_out);
}

template <class F, Of<VersionsDocument> D>
void describe(F& f, D& d) {
  f("at", d.at);
  f("versions", d.versions);
}

template <class F, Of<VersionDocument> D>
void describe(F& f, D& d) {
  f("at", d.at);
  f("version", d.version);
}

template <class F, Of<RefitDocument> D>
void describe(F& f, D& d) {
  f("at", d.at);
  f("refit", d.refit);
  f("result", d.result);
  f("why", d.why);
  f("nodes_prepared", d.nodes_prepared);
  f("nodes_committed", d.nodes_committed);
  f("nodes_failed", d.nodes_failed);
  f("nodes_total", d.nodes_total);
  f("seconds", d.seconds);
  f("left_out", d.left_out);
}

template <class F, Of<PublishRequest> D>
void describe(F& f, D& d) {
  f("dir", d.dir);
  f("version", d.version);
  f("policy", d.policy);
  f("dry_run", d.dry_run);
}

template <class F, Of<PublishDocument> D>
void describe(F& f, D& d) {
  f("version", d.version);
  f("base", d.base);
  f("dry_run", d.dry_run);
  f("dense_bytes", d.dense_bytes);
  f("payload_bytes", d.payload_bytes);
  f("changed_percent", d.changed_percent);
  f("predicted_seconds", d.predicted_seconds);
}

template <class F, Of<AbortRequest> D>
void describe(F& f, D& d) {
  f("version", d.version);
}

template <class F, Of<AbortDocument> D>
void describe(F& f, D& d) {
  f("version", d.version);
}

template <class F, Of<VerifyRequest> D>
void describe(F& f, D& d) {
  f("deep", d.deep);
  f("wait", d.wait);
}

template <class F, Of<DamagedPlace> D>
void describe(F& f, D& d) {
  f("tensor", d.tensor);
  f("block", d.block);
}

template <class F, Of<VerifyRow> D>
void describe(F& f, D& d) {
  f("node", d.node);
  f("result", d.result);
  f("version", d.version);
  f("checked_bytes", d.checked_bytes);
  f("damaged_blocks", d.damaged_blocks);
  f("seconds", d.seconds);
  f("text", d.text);
  f("state", d.state);
  f("total_bytes", d.total_bytes);
  f("damaged", d.damaged);
}

template <class F, Of<VerifyDocument> D>
void describe(F& f, D& d) {
  f("at", d.at);
  f("round", d.round);
  f("began", d.began);
  f("done", d.done);
  f("deep", d.deep);
  f("nodes", d.nodes);
}

template <class F, Of<ErrorDocument> D>
void describe(F& f, D& d) {
  f("what", d.what);
  f("why", d.why);
  f("try", d.try_next);
  f("exit_code", d.exit_code);
}

}  // namespace deltarelay::relay::admin
