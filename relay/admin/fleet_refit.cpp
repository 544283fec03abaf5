// A refit as operators see it: phase, progress by region, times per phase, and the row that history keeps.
#include <algorithm>
#include <cmath>
#include <utility>

#include "relay/admin/fleet_rows.hpp"

namespace deltarelay::relay::admin {
namespace {

using Phase = RefitSummary::Phase;

const char* phase_name(Phase phase, bool closed = true) {
  switch (phase) {
    case Phase::none:
      return "";
    case Phase::open:
      return "OPEN";
    case Phase::distributing:
      return "DISTRIBUTING";
    case Phase::preparing:
      return "PREPARING";
    case Phase::deciding:
      return "DECIDED";
    case Phase::committed:
      return closed ? "CLOSED" : "DECIDED";
    case Phase::aborted:
      return "CLOSED";
  }
  return "";
}

/// On a relay, what its own record implies.
const char* phase_name(NodeState state) {
  switch (state) {
    case NodeState::prepared:
      return "PREPARING";
    case NodeState::committing:
      return "DECIDED";
    default:
      return "DISTRIBUTING";
  }
}

const char* result_name(Phase phase) {
  if (phase == Phase::committed) return "committed";
  if (phase == Phase::aborted) return "aborted";
  return "";
}

double seconds_between(const std::optional<Instant>& from, const std::optional<Instant>& to) {
  if (!from || !to || *to < *from) return 0;
  return std::round(std::chrono::duration<double>(*to - *from).count() * 1000) / 1000;
}

double percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return 0;
  return std::round(1000.0 * static_cast<double>(std::min(part, whole)) / static_cast<double>(whole)) / 10;
}

/// Of the refit's frames, as many as anybody knows of: END states the count, before it the furthest node does.
std::uint64_t frames_known(const Fleet& fleet, Version version) {
  std::uint64_t total = 0, furthest = 0;
  for (const FleetNode& node : fleet.nodes()) {
    if (!node.receives(version)) continue;
    total = std::max(total, node.record->frames_total);
    furthest = std::max(furthest, node.record->frames_received);
  }
  return total != 0 ? total : furthest;
}

/// One region while its nodes are gone through.
struct Tally {
  RegionProgress shown;
  double received = 0, applied = 0, rate = 0;
  std::uint64_t counted = 0;
};

void count(Tally& tally, const Fleet& fleet, const FleetNode& node, Version version, std::uint64_t known) {
  ++tally.shown.nodes_total;
  if (!node.reachable || node.record == nullptr) return;
  const NodeRecord& record = *node.record;
  const bool done = record.committed == version;
  const bool receives = node.receives(version);
  const bool prepared = receives && (record.state == NodeState::prepared || record.state == NodeState::committing);
  ++tally.shown.nodes_up;
  if (done || prepared) ++tally.shown.prepared;
  if (record.state == NodeState::failed) ++tally.shown.failed;
  // The root receives nothing and applies last: it would be the slowest of its region until the very end.
  if (fleet.input().is_root && node.name == fleet.input().node) return;
  const double received = done ? 100 : receives ? percent(record.frames_received, known) : 0;
  const double applied = done ? 100 : receives ? percent(record.frames_applied, known) : 0;
  if (tally.shown.slowest.node.empty() || applied < tally.shown.slowest.percent) {
    tally.shown.slowest.node = node.name;
    tally.shown.slowest.percent = applied;
  }
  tally.received += received;
  tally.applied += applied;
  tally.rate += fleet.rate_of(record);
  ++tally.counted;
}

/// In plan order. A region with nobody but the root has as much as the root.
std::vector<RegionProgress> regions_of(const Fleet& fleet, Version version) {
  const std::uint64_t known = frames_known(fleet, version);
  std::vector<Tally> tallies;
  for (const FleetNode& node : fleet.nodes()) {
    if (node.plan == nullptr) continue;
    auto tally =
        std::find_if(tallies.begin(), tallies.end(), [&](const Tally& t) { return t.shown.name == node.plan->region; });
    if (tally == tallies.end()) {
      tally = tallies.emplace(tallies.end());
      tally->shown.name = node.plan->region;
    }
    count(*tally, fleet, node, version, known);
  }
  std::vector<RegionProgress> regions;
  for (Tally& tally : tallies) {
    // Unreachable nodes count as nothing received; the root of a shared region does not count.
    const bool root_here = fleet.input().is_root && fleet.input().plan->root().region == tally.shown.name;
    const auto expected = static_cast<double>(tally.shown.nodes_total - (root_here ? 1u : 0u));
    const double alone = root_here && expected == 0 ? 100 : 0;
    tally.shown.received_percent = expected > 0 ? std::round(10 * tally.received / expected) / 10 : alone;
    tally.shown.applied_percent = expected > 0 ? std::round(10 * tally.applied / expected) / 10 : alone;
    if (tally.counted > 0)
      tally.shown.rate_bytes_per_second = std::round(tally.rate / static_cast<double>(tally.counted));
    regions.push_back(std::move(tally.shown));
  }
  return regions;
}

/// When what has begun and not ended is to be taken as ended: now while the refit is under way; else when it ended, or,
/// when nodes are still away, when it was decided.
Instant clock_of(const Fleet& fleet) {
  const RefitSummary& refit = fleet.input().refit;
  if (refit.closed) return *refit.closed;
  const bool under_way = fleet.in_flight() == refit.version;
  return !under_way && refit.decided ? *refit.decided : fleet.input().now;
}

PhaseSeconds phase_seconds(const Fleet& fleet) {
  const RefitSummary& refit = fleet.input().refit;
  const Instant clock = clock_of(fleet);
  PhaseSeconds seconds;
  seconds.encode = seconds_between(refit.opened, refit.encoded.value_or(clock));
  seconds.distribute = seconds_between(refit.first_record, refit.prepared.value_or(clock));
  seconds.prepare = seconds_between(refit.encoded, refit.prepared.value_or(clock));
  if (refit.phase == Phase::committed) seconds.commit = seconds_between(refit.decided, clock);
  return seconds;
}

/// Nodes of the plan by how far they are with the refit.
struct Counts {
  std::uint64_t prepared = 0, committed = 0, failed = 0;
};

Counts counts_of(const Fleet& fleet) {
  const RefitSummary& refit = fleet.input().refit;
  Counts counts;
  // The core's own count is of the moment of an abort; afterwards the records speak of what came next.
  if (refit.phase == Phase::aborted) {
    counts.prepared = refit.prepared_nodes;
    counts.failed = refit.failed_nodes;
    return counts;
  }
  for (const FleetNode& node : fleet.nodes()) {
    if (node.plan == nullptr || !node.reachable || node.record == nullptr) continue;
    const NodeState state = node.record->state;
    const bool committed = node.at(refit.version);
    counts.committed += committed;
    counts.prepared +=
        committed || (node.receives(refit.version) && (state == NodeState::prepared || state == NodeState::committing));
    counts.failed += state == NodeState::failed;
  }
  return counts;
}

/// Whom the root counts as not prepared, those with a trouble first.
std::vector<AwaitedNode> awaited_nodes(const Fleet& fleet) {
  constexpr std::size_t shown_max = 8;
  const std::vector<std::string>& names = fleet.input().refit.left_out;
  std::vector<AwaitedNode> awaited;
  for (const FleetNode& node : fleet.nodes()) {
    if (std::find(names.begin(), names.end(), node.name) == names.end()) continue;
    const NodeRow row = fleet.row(node);
    const bool failed = node.record != nullptr && node.record->state == NodeState::failed && row.reason;
    awaited.push_back({node.name, node.reachable && failed ? row.reason->code : row.state});
  }
  std::stable_partition(awaited.begin(), awaited.end(), [](const AwaitedNode& node) {
    return node.state != state_name(NodeState::receiving) && node.state != state_name(NodeState::idle);
  });
  if (awaited.size() > shown_max) awaited.resize(shown_max);
  return awaited;
}

}  // namespace

std::optional<Syncing> syncing_view(const Fleet& fleet) {
  Syncing view;
  double done = 0;
  for (const FleetNode& node : fleet.nodes()) {
    if (!node.reachable || node.record == nullptr || node.record->state != NodeState::syncing) continue;
    const NodeRecord& record = *node.record;
    const double share = percent(record.sync_blocks_done, record.sync_blocks_total);
    if (view.nodes == 0 || share < view.slowest.percent) view.slowest = {node.name, share};
    ++view.nodes;
    view.undoing += undoes(record);
    done += share;
  }
  if (view.nodes == 0) return std::nullopt;
  view.done_percent = std::round(10 * done / static_cast<double>(view.nodes)) / 10;
  return view;
}

InFlight in_flight_view(const Fleet& fleet, Version version) {
  const FleetInput& input = fleet.input();
  InFlight view;
  view.version = version;
  if (input.is_root) {
    view.base = input.refit.base;
    view.phase = phase_name(input.refit.phase, input.refit.closed.has_value());
    view.dense_bytes = input.encode.dense_bytes;
    view.scanned_bytes = input.encode.scanned_bytes;
    view.payload_bytes = input.encode.payload_bytes;
    view.changed_percent = input.encode.changed_percent;
    view.elapsed_seconds = seconds_between(input.refit.opened, clock_of(fleet));
    if (input.refit.phase == Phase::preparing) {
      const double timeout = std::chrono::duration<double>(input.policy.prepare_timeout).count();
      view.awaited = Awaited{input.refit.left_out.size(), awaited_nodes(fleet), timeout};
    }
  } else if (const NodeRecord* self = find_record(input, input.node); self != nullptr) {
    view.base = input.image_version;
    view.phase = phase_name(self->state);
    view.payload_bytes = self->received_bytes;
  }
  view.regions = regions_of(fleet, version);
  return view;
}

RefitDocument refit_document(const FleetInput& input) {
  const Fleet fleet(input);
  const RefitSummary& refit = input.refit;
  RefitDocument document;
  document.at = input.at;
  const Version version = refit.phase != Phase::none ? refit.version : fleet.in_flight();
  if (codec::raw(version) != 0) document.refit = in_flight_view(fleet, version);
  if (refit.phase == Phase::none) {
    // A relay keeps no history; while it takes a refit back, it knows at least what became of that one.
    const NodeRecord* self = find_record(input, input.node);
    if (self == nullptr || !undoes(*self)) return document;
    document.refit = in_flight_view(fleet, self->receiving);
    document.refit->phase = phase_name(Phase::aborted);
    document.result = result_name(Phase::aborted);
    return document;
  }
  document.result = result_name(refit.phase);
  document.why = refit.why;
  const Counts counts = counts_of(fleet);
  document.nodes_prepared = counts.prepared;
  document.nodes_committed = counts.committed;
  document.nodes_failed = counts.failed;
  document.nodes_total = input.plan->nodes().size();
  document.seconds = phase_seconds(fleet);
  if (!document.result.empty()) document.left_out = refit.left_out;
  return document;
}

VersionRow version_row(const FleetInput& input) {
  const Fleet fleet(input);
  const RefitSummary& refit = input.refit;
  VersionRow row;
  row.version = refit.version;
  row.base = refit.base;
  const auto moment = refit.decided ? refit.decided : refit.closed;
  row.at = moment ? fleet.time_of(*moment) : input.at;
  row.dense_bytes = input.encode.dense_bytes;
  row.payload_bytes = input.encode.payload_bytes;
  row.changed_percent = input.encode.changed_percent;
  row.seconds = phase_seconds(fleet);
  row.result = result_name(refit.phase);
  row.why = refit.why;
  row.nodes_committed = counts_of(fleet).committed;
  row.nodes_total = input.plan->nodes().size();
  row.left_out = refit.left_out;
  return row;
}

}  // namespace deltarelay::relay::admin
