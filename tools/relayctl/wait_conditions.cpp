// See wait_conditions.hpp.
#include "tools/relayctl/wait_conditions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/relayctl/daemon.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/joined.hpp"
#include "tools/relayctl/refit_progress.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::NodesDocument;
using relay::admin::RefitDocument;
using relay::admin::StatusDocument;
using relay::admin::Version;
using relay::admin::VersionDocument;

constexpr std::size_t names_shown_max = 6;

bool enough(std::uint64_t have, std::uint64_t total, double percent) {
  // Compared as products: 19 of 20 is 95 % exactly, which a quotient may miss by a bit.
  return total > 0 && static_cast<double>(have) * 100.0 >= percent * static_cast<double>(total);
}

/// The reason why `version` will never be committed, if the daemon knows one.
std::optional<ClientError> aborted(const Daemon& daemon, Version version) {
  std::string result;
  std::string why;
  const auto refit = daemon.get<RefitDocument>("/v1/refit");
  if (!refit.error && refit.document.refit && refit.document.refit->version == version) {
    result = refit.document.result;
    why = refit.document.why;
  } else if (const auto past = daemon.get<VersionDocument>("/v1/versions/" + std::to_string(codec::raw(version)));
             !past.error) {
    result = past.document.version.result;
    why = past.document.version.why;
  }
  if (result != "aborted") return std::nullopt;
  ClientError error;
  error.exit_code = ExitCode::failed;
  error.what = version_text(version) + " will never be committed";
  error.why = "it was aborted" + (why.empty() ? "" : ": " + why);
  error.try_next = "publish it again under a new version";
  return error;
}

/// A node that takes an aborted refit back has its version again only when it is done.
bool holds(const relay::admin::NodeRow& row, Version version) {
  return row.state != "unreachable" && codec::raw(row.undoing_version) == 0 &&
         codec::raw(row.version) >= codec::raw(version);
}

std::string stragglers(const NodesDocument& document, Version version) {
  std::vector<std::string> names;
  for (const auto& row : document.nodes) {
    if (row.state == "unreachable") {
      names.push_back(row.name + " (unreachable)");
    } else if (!holds(row, version)) {
      names.push_back(fmt::format("{} ({})", row.name, row.reason ? row.reason->code : row.state));
    }
  }
  if (names.empty()) return "";
  const std::size_t shown = std::min(names.size(), names_shown_max);
  const std::size_t hidden = names.size() - shown;
  names.resize(shown);
  std::string text = "; not " + joined(names, ", ");
  if (hidden > 0) text += fmt::format(" and {} more", hidden);
  return text;
}

Found look_committed(const Daemon& daemon, Awaited& awaited) {
  Found found;
  auto answer = daemon.get<StatusDocument>("/v1/status");
  found.error = std::move(answer.error);
  if (found.error) return found;
  const StatusDocument& status = answer.document;
  found.body = std::move(answer.body);
  if (!awaited.version && status.in_flight) awaited.version = status.in_flight->version;
  if (!awaited.version && codec::raw(status.committed.version) != 0) awaited.version = status.committed.version;
  const Version goal = awaited.version.value_or(Version{1});
  const auto& committed = status.committed;
  found.version = committed.version;
  found.text = fmt::format("{} committed on {}/{} nodes", version_text(committed.version), committed.nodes_committed,
                           committed.nodes_total);
  if (codec::raw(committed.version) >= codec::raw(goal)) {
    const double percent = awaited.percent.value_or(0.0);
    found.reached = percent == 0.0 || enough(committed.nodes_committed, committed.nodes_total, percent);
    return found;
  }
  if (status.in_flight) {
    found.text += fmt::format(", {} {} {}", version_text(status.in_flight->version), status.in_flight->phase,
                              human_percent(applied_percent(*status.in_flight)));
    if (const std::string who = awaited_text(*status.in_flight); !who.empty()) found.text += ", " + who;
  } else {
    found.text += ", nothing is in flight";
  }
  if (awaited.version) found.never = aborted(daemon, *awaited.version);
  return found;
}

Found look_converged(const Daemon& daemon, Awaited& awaited) {
  Found found;
  auto answer = daemon.get<NodesDocument>("/v1/nodes");
  found.error = std::move(answer.error);
  if (found.error) return found;
  const NodesDocument& nodes = answer.document;
  found.body = std::move(answer.body);
  if (!awaited.version && codec::raw(nodes.in_flight_version) != 0) awaited.version = nodes.in_flight_version;
  // Never less than what is committed: a fleet on the version before is not converged.
  const std::uint64_t least = std::max<std::uint64_t>(1, codec::raw(awaited.version.value_or(Version{1})));
  const Version goal{std::max(least, codec::raw(nodes.committed_version))};
  const std::uint64_t have = holders(nodes, goal);
  found.version = goal;
  found.text =
      fmt::format("{}/{} nodes hold {}{}", have, nodes.nodes.size(), version_text(goal), stragglers(nodes, goal));
  const bool decided = codec::raw(nodes.committed_version) >= least;
  found.reached = decided && enough(have, nodes.nodes.size(), awaited.percent.value_or(100.0));
  if (!decided && awaited.version) found.never = aborted(daemon, *awaited.version);
  return found;
}

Found look_healthy(const Daemon& daemon) {
  Found found;
  auto answer = daemon.get<StatusDocument>("/v1/status");
  found.error = std::move(answer.error);
  if (found.error) return found;
  const auto& health = answer.document.health;
  found.body = std::move(answer.body);
  found.version = answer.document.committed.version;
  found.reached = health.level == "OK";
  std::vector<std::string> codes;
  for (const auto& check : health.checks) {
    codes.push_back(check.node.empty() ? check.code : check.code + " " + check.node);
  }
  found.text = "health " + health.level;
  if (!codes.empty()) found.text += ": " + joined(codes, ", ");
  return found;
}

}  // namespace

std::uint64_t holders(const NodesDocument& document, Version version) {
  return static_cast<std::uint64_t>(
      std::count_if(document.nodes.begin(), document.nodes.end(),
                    [&](const relay::admin::NodeRow& row) { return holds(row, version); }));
}

Found look_for(const Daemon& daemon, Awaited& awaited) {
  switch (awaited.goal) {
    case Goal::committed:
      return look_committed(daemon, awaited);
    case Goal::converged:
      return look_converged(daemon, awaited);
    case Goal::healthy:
      return look_healthy(daemon);
  }
  return {};
}

std::string awaited_text(const Awaited& awaited) {
  if (awaited.goal == Goal::healthy) return "the mesh to be healthy";
  const std::string version = awaited.version ? version_text(*awaited.version) : "the committed version";
  if (awaited.goal == Goal::committed) {
    const std::string what = awaited.version ? version : "a version";
    return awaited.percent.value_or(0.0) == 0.0
               ? what + " to be committed"
               : fmt::format("{} to be committed on {:g} % of the nodes", what, *awaited.percent);
  }
  const double percent = awaited.percent.value_or(100.0);
  return percent >= 100.0 ? "every node to hold " + version
                          : fmt::format("{:g} % of the nodes to hold {}", percent, version);
}

}  // namespace deltarelay::relayctl
