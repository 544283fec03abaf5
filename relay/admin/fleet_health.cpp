// The coded checks: what is wrong with the fleet, how bad it is, and what an operator can do.
//
// WARN: something is degraded and handled, or needs a hand some day. ERR: refits cannot commit, or a node needs a hand
// now.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "relay/admin/fleet_rows.hpp"

namespace deltarelay::relay::admin {
namespace {

constexpr const char* warn = "WARN";
constexpr const char* err = "ERR";

Check make_check(const char* level, std::string code, std::string node, std::string text, std::string fix) {
  Check check;
  check.code = std::move(code);
  check.level = level;
  check.node = std::move(node);
  check.text = std::move(text);
  check.fix = std::move(fix);
  return check;
}

std::string fix_of_failure(const std::string& code, const std::string& node) {
  struct Fix {
    std::string_view code, text;
  };
  static constexpr std::array<Fix, 7> known{{
      {"DISK_FULL", "free space on that file system; the node tries again by itself"},
      {"READ_ONLY", "remount the file system writable, or give relayd the right to write the image"},
      {"FENCED", "an older root is still running: stop it"},
      {"IMAGE_LOCKED", "stop the other process that holds the image directory"},
      {"IMAGE_REPLACED", "nothing while it recovers; find out who writes to the image directory"},
      {"IMAGE_DAMAGED", "put the checkpoint of the committed version back, then restart relayd"},
      {"ENGINE_READS", "nothing while the engine loads; when it never lets go, stop that process"},
  }};
  for (const Fix& fix : known)
    if (fix.code == code) return std::string(fix.text);
  return "journalctl -u relayd on " + node;
}

/// What became of the nodes below a lost one.
struct Below {
  std::size_t moved = 0, out_of_reach = 0;
};

std::map<std::string, Below> below_lost_nodes(const Fleet& fleet) {
  std::map<std::string, Below> below;
  for (const FleetNode& node : fleet.nodes()) {
    if (!node.lost_with.empty()) ++below[node.lost_with].out_of_reach;
    if (!node.reachable || node.record == nullptr) continue;
    const std::string planned = fleet.planned_parent(node);
    if (!planned.empty() && node.record->parent != planned) ++below[planned].moved;
  }
  return below;
}

Check lost_node(const Fleet& fleet, const FleetNode& lost, const Below& below) {
  std::string text = fleet.row(lost).reason->text;
  if (below.moved + below.out_of_reach > 0) {
    text += fmt::format("; of the nodes below it {} re-attached elsewhere, {} out of reach", below.moved,
                        below.out_of_reach);
  }
  return make_check(warn, "NODE_UNREACHABLE", lost.name, std::move(text),
                    "systemctl status relayd on that host; it catches up by itself when it is back");
}

void check_node(const Fleet& fleet, const FleetNode& node, Version committed, const std::map<std::string, Below>& below,
                std::vector<Check>& checks) {
  const FleetInput& input = fleet.input();
  if (node.plan == nullptr) {
    checks.push_back(make_check(warn, "NOT_IN_PLAN", node.name,
                                "it reports to this mesh, but the plan does not have it",
                                "add it to the topology file, or stop it"));
  }
  if (!node.reachable) {
    const auto found = below.find(node.name);
    if (node.lost_with.empty())
      checks.push_back(lost_node(fleet, node, found == below.end() ? Below{} : found->second));
    return;
  }
  if (node.record == nullptr) return;
  const NodeRecord& record = *node.record;
  if (record.state == NodeState::failed) {
    const std::string code = record.reason_code.empty() ? "FAILED" : record.reason_code;
    checks.push_back(
        make_check(record.retryable ? warn : err, code, node.name,
                   record.reason_text + (record.retryable ? "; tried again by itself" : "; not tried again"),
                   fix_of_failure(code, node.name)));
  } else if (!record.reason_code.empty()) {
    checks.push_back(make_check(warn, record.reason_code, node.name, record.reason_text,
                                fix_of_failure(record.reason_code, node.name)));
  } else if (record.state == NodeState::idle && record.committed < committed && codec::raw(fleet.in_flight()) == 0) {
    checks.push_back(
        make_check(warn, "STALE", node.name,
                   fmt::format("it is at v{}, the mesh is at v{}", codec::raw(record.committed), codec::raw(committed)),
                   "nothing while it catches up; when it does not, journalctl -u relayd on that host"));
  }
  if (node.name == input.node && !input.is_root && record.parent.empty()) {
    checks.push_back(make_check(warn, "PARENT_DOWN", node.name,
                                "no link to any parent; each candidate is tried in turn",
                                "relayctl tree on the root; relayd on the planned parent"));
  }
}

/// Whether enough nodes are there for a refit to commit at all.
void check_quorum(const Fleet& fleet, std::vector<Check>& checks) {
  const FleetInput& input = fleet.input();
  std::size_t total = 0, reachable = 0;
  for (const FleetNode& node : fleet.nodes()) {
    if (node.plan == nullptr) continue;
    ++total;
    if (node.reachable) ++reachable;
  }
  const double quorum =
      input.policy.commit_if_quorum ? std::min(input.policy.quorum, input.policy.timeout_quorum) : input.policy.quorum;
  const auto needed = static_cast<std::size_t>(std::ceil(quorum * static_cast<double>(total) - 1e-9));
  if (reachable >= needed) return;
  checks.push_back(make_check(err, "QUORUM_LOST", "",
                              fmt::format("{} of {} nodes are reachable, policy {} needs {}: a refit cannot commit now",
                                          reachable, total, policy_text(input.policy), needed),
                              "bring nodes back, or publish with --policy quorum:SHARE"));
}

}  // namespace

Health health_view(const Fleet& fleet) {
  const FleetInput& input = fleet.input();
  const Version committed = committed_version(input);
  Health health;
  if (input.is_root) {
    check_quorum(fleet, health.checks);
    if (input.refit.phase == RefitSummary::Phase::aborted) {
      health.checks.push_back(make_check(warn, "REFIT_ABORTED", "",
                                         fmt::format("v{}: {}", codec::raw(input.refit.version), input.refit.why),
                                         "publish again when the cause is gone"));
    }
  }
  const auto below = below_lost_nodes(fleet);
  for (const FleetNode& node : fleet.nodes()) check_node(fleet, node, committed, below, health.checks);
  std::stable_partition(health.checks.begin(), health.checks.end(),
                        [](const Check& check) { return check.level == err; });
  if (!health.checks.empty()) health.level = health.checks.front().level;
  return health;
}

}  // namespace deltarelay::relay::admin
