// See render_status.hpp.
#include "tools/relayctl/render_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "config/units.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::Check;
using relay::admin::Committed;
using relay::admin::InFlight;
using relay::admin::Problem;
using relay::admin::StatusDocument;

/// One row of "problems": what the daemon calls problems, and health checks that are not among them.
struct Trouble {
  std::string code;
  std::string node;
  std::string text;
  std::string fix;
  Style style = Style::warning;
};

std::vector<Trouble> troubles(const StatusDocument& document) {
  std::vector<Trouble> all;
  for (const Problem& problem : document.problems) all.push_back({problem.code, problem.node, problem.text, "", {}});
  for (const Check& check : document.health.checks) {
    const auto same = [&](const Trouble& one) { return one.code == check.code && one.node == check.node; };
    auto known = std::find_if(all.begin(), all.end(), same);
    if (known == all.end()) known = all.insert(all.end(), {check.code, check.node, check.text, "", {}});
    known->fix = check.fix;
    known->style = health_style(check.level);
  }
  for (Trouble& one : all) {
    if (one.style == Style::plain) one.style = Style::warning;
  }
  return all;
}

std::string plan_text(const relay::admin::PlanStamp& plan) {
  if (plan.digest.empty()) return "";
  return fmt::format("plan {} ({})", codec::raw(plan.epoch), plan.digest);
}

std::string uptime_text(const StatusDocument& document) {
  return document.started ? ", up " + human_age(document.at - *document.started) : "";
}

std::string policy_text(const std::string& policy) {
  return policy.empty() ? "" : "policy " + policy;
}

std::string nodes_text(const Committed& committed) {
  const double percent = committed.nodes_total == 0 ? 0.0
                                                    : 100.0 * static_cast<double>(committed.nodes_committed) /
                                                          static_cast<double>(committed.nodes_total);
  return fmt::format("{}/{} nodes ({})", committed.nodes_committed, committed.nodes_total, human_percent(percent, 1));
}

std::string checks_text(const relay::admin::Health& health) {
  const std::size_t checks = health.checks.size();
  return checks == 0 ? "" : fmt::format("{} {}", checks, checks == 1 ? "check" : "checks");
}

std::string undoing_text(const relay::admin::Syncing& syncing) {
  if (syncing.undoing == 0) return "";
  if (syncing.nodes == 1) return "takes an aborted refit back";
  return syncing.undoing == syncing.nodes ? "take an aborted refit back"
                                          : fmt::format("{} take an aborted refit back", syncing.undoing);
}

std::string head(const Context& context, const StatusDocument& document) {
  Table table({{""}, {""}, {""}, {""}});
  const bool root_answers = document.node == document.root;
  table.add({"mesh", context.paint(Style::strong, document.mesh),
             fmt::format("root {} (epoch {}{})", document.root.empty() ? "?" : document.root,
                         codec::raw(document.epoch), root_answers ? uptime_text(document) : ""),
             plan_text(document.plan)});
  if (!root_answers) {
    table.add({"asked", document.node, fmt::format("{}{}", document.role, uptime_text(document)),
               "knows the nodes below it only"});
  }
  const auto& health = document.health;
  table.add({"health", context.paint(health_style(health.level), health.level), checks_text(health),
             health.checks.empty() ? "" : "relayctl health detail"});
  const Committed& committed = document.committed;
  if (codec::raw(committed.version) == 0) {
    table.add({"committed", "nothing yet", nodes_text(committed), policy_text(committed.policy)});
  } else {
    const std::string age = committed.at ? "  " + human_age(document.at - *committed.at) + " ago" : "";
    table.add(
        {"committed", version_text(committed.version) + age, nodes_text(committed), policy_text(committed.policy)});
  }
  if (document.in_flight) {
    const InFlight& refit = *document.in_flight;
    table.add({"in flight", fmt::format("{}  base {}", version_text(refit.version), version_text(refit.base)),
               size_text(refit), fmt::format("{}  {}", refit.phase, elapsed_text(refit))});
  } else {
    table.add({"in flight", "none"});
  }
  if (document.syncing) {
    const auto& syncing = *document.syncing;
    table.add({"syncing",
               fmt::format("{} {}  {}", syncing.nodes, syncing.nodes == 1 ? "node" : "nodes",
                           human_percent(syncing.done_percent)),
               fmt::format("slowest {}  {}", syncing.slowest.node, human_percent(syncing.slowest.percent)),
               undoing_text(syncing)});
  }
  return table.text();
}

std::string regions(const Context& context, const InFlight& refit) {
  Table table({{"region"},
               {"nodes", Align::right},
               {"received", Align::right},
               {"applied", Align::right},
               {"prepared", Align::right},
               {"failed", Align::right},
               {"slowest"},
               {"rate", Align::right}},
              "  ");
  for (const auto& region : refit.regions) {
    const std::string up = fmt::format("{}/{}", region.nodes_up, region.nodes_total);
    const std::string slowest =
        region.slowest.node.empty()
            ? "-"
            : fmt::format("{}  {}", region.slowest.node, human_percent(whole_percent(refit, region.slowest.percent)));
    table.add({region.name, region.nodes_up < region.nodes_total ? context.paint(Style::warning, up) : up,
               human_percent(whole_percent(refit, region.received_percent)),
               human_percent(whole_percent(refit, region.applied_percent)), std::to_string(region.prepared),
               region.failed > 0 ? context.paint(Style::bad, std::to_string(region.failed)) : "0", slowest,
               human_link_rate(region.rate_bytes_per_second)});
  }
  std::string text = table.empty() ? "" : table.text();
  if (const std::string awaited = awaited_text(refit); !awaited.empty()) {
    const std::chrono::milliseconds timeout(std::llround(refit.awaited->timeout_seconds * 1000));
    text += fmt::format("  {}; the root decides without them after {} without any progress\n", awaited,
                        config::duration_text(timeout));
  }
  return text;
}

std::string problems(const Context& context, const StatusDocument& document) {
  Table table({{""}, {""}, {""}}, "  ");
  for (const Trouble& one : troubles(document)) {
    table.add({context.paint(one.style, one.code), one.node.empty() ? "mesh" : one.node, one.text});
    if (context.wide() && !one.fix.empty()) table.add({"", "", context.paint(Style::faint, "fix: " + one.fix)});
  }
  return table.empty() ? "" : "problems\n" + table.text();
}

}  // namespace

std::string status_text(const Context& context, const StatusDocument& document) {
  std::string text = head(context, document);
  if (document.in_flight) text += regions(context, *document.in_flight);
  return text + problems(context, document);
}

std::string health_text(const Context& context, const relay::admin::Health& health, bool detail) {
  std::string text = context.paint(health_style(health.level), health.level);
  if (!health.checks.empty()) text += "  " + checks_text(health);
  Table table({{""}, {""}, {""}, {""}}, "  ");
  for (const Check& check : health.checks) {
    table.add({context.paint(health_style(check.level), check.level), check.code,
               check.node.empty() ? "mesh" : check.node, check.text});
    if (detail && !check.fix.empty()) table.add({"", "", "", context.paint(Style::faint, "fix: " + check.fix)});
  }
  return text + "\n" + (table.empty() ? "" : table.text());
}

ExitCode health_exit(std::string_view level) {
  if (level == "OK") return ExitCode::ok;
  return level == "WARN" ? ExitCode::health_warn : ExitCode::health_err;
}

Style health_style(std::string_view level) {
  if (level == "OK") return Style::good;
  return level == "WARN" ? Style::warning : Style::bad;
}

}  // namespace deltarelay::relayctl
