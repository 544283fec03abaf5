#include "tools/relayctl/plan_text.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <cmath>

#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/table.hpp"
#include "topology/render.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;
using topology::bytes_text;
using topology::HostIndex;
using topology::rate_text;

/// Milliseconds are all that a prediction is worth; more digits would only differ from machine to machine.
double milli(double seconds) { return std::round(seconds * 1000) / 1000; }

json::object node_json(const topology::Plan& plan, HostIndex index, const topology::NodeTime& time) {
  const topology::PlanNode& node = plan.node(index);
  json::array children, candidates;
  for (const HostIndex child : node.children) children.emplace_back(plan.node(child).name);
  for (const HostIndex candidate : node.candidates) candidates.emplace_back(plan.node(candidate).name);
  json::object out;
  out["name"] = node.name;
  out["address"] = node.address.text();
  out["region"] = node.region;
  out["rank"] = node.rank;
  out["depth"] = node.depth;
  out["region_head"] = node.region_head;
  if (node.parent) {
    out["parent"] = plan.node(*node.parent).name;
  } else {
    out["parent"] = nullptr;
  }
  out["children"] = std::move(children);
  out["candidates"] = std::move(candidates);
  out["inbound_bytes_per_second"] = node.inbound.bytes_per_second;
  out["done_seconds"] = milli(time.done_seconds);
  out["bound_by"] = topology::name_of(time.bound);
  return out;
}

json::object region_json(const topology::RegionTime& region) {
  json::object out;
  out["name"] = region.name;
  out["hosts"] = region.hosts;
  out["head"] = region.head;
  if (region.entered_from.empty()) {
    out["entered_from"] = nullptr;
  } else {
    out["entered_from"] = region.entered_from;
  }
  out["depth"] = region.depth;
  out["rate_bytes_per_second"] = region.rate.bytes_per_second;
  out["done_seconds"] = milli(region.done_seconds);
  out["bound_seconds"] = milli(region.bound_seconds);
  out["bound_by"] = topology::name_of(region.bound);
  out["limited_by"] = region.limited_by;
  return out;
}

}  // namespace

std::string plan_summary(const topology::Model& model, const topology::Plan& plan, const topology::RefitSize& refit,
                         const topology::Prediction& prediction) {
  std::string out = fmt::format("plan       {} ({}) of mesh {}: {} hosts in {} regions, root {}\n", plan.epoch(), plan.digest(),
                                plan.mesh(), plan.nodes().size(), model.regions.size(), plan.root().name);
  out += fmt::format("refit      {} at {} changed: {} to every host\n", bytes_text(refit.checkpoint_bytes),
                     human_percent(refit.change * 100, 1), bytes_text(prediction.payload_bytes));
  out += fmt::format("predicted  {} ({} of it commit); bound {}, efficiency {}; {:.0f} x faster than the dense checkpoint ({})\n",
                     human_seconds(prediction.total_seconds), human_seconds(prediction.commit_seconds),
                     human_seconds(prediction.bound_seconds), human_percent(prediction.efficiency * 100),
                     prediction.dense_seconds / prediction.total_seconds, human_seconds(prediction.dense_seconds));
  Table table({{"region"}, {"hosts", Align::right}, {"head"}, {"fed by"}, {"depth", Align::right}, {"rate", Align::right},
               {"done", Align::right}, {"bound", Align::right}, {"limited by"}},
              "  ");
  for (const topology::RegionTime& region : prediction.regions) {
    table.add({region.name, std::to_string(region.hosts), region.head, region.entered_from.empty() ? "-" : region.entered_from,
               std::to_string(region.depth), region.rate.bytes_per_second == 0 ? "-" : rate_text(region.rate),
               human_seconds(region.done_seconds), human_seconds(region.bound_seconds), region.limited_by});
  }
  return out + table.text();
}

json::object plan_json(const topology::Model& model, const topology::Plan& plan, const topology::RefitSize& refit,
                       const topology::Prediction& prediction) {
  json::object out;
  out["schema"] = "deltarelay.plan/1";
  out["mesh"] = plan.mesh();
  out["plan_epoch"] = std::to_string(plan.epoch());
  out["digest"] = plan.digest();
  out["root"] = plan.root().name;
  json::array standby;
  for (const HostIndex index : model.standby) standby.emplace_back(plan.node(index).name);
  out["standby"] = std::move(standby);
  json::object predicted;
  predicted["checkpoint_bytes"] = refit.checkpoint_bytes;
  predicted["change"] = refit.change;
  predicted["payload_bytes"] = prediction.payload_bytes;
  predicted["total_seconds"] = milli(prediction.total_seconds);
  predicted["commit_seconds"] = milli(prediction.commit_seconds);
  predicted["bound_seconds"] = milli(prediction.bound_seconds);
  predicted["efficiency"] = milli(prediction.efficiency);
  predicted["dense_seconds"] = milli(prediction.dense_seconds);
  json::array regions;
  for (const topology::RegionTime& region : prediction.regions) regions.emplace_back(region_json(region));
  predicted["regions"] = std::move(regions);
  out["predicted"] = std::move(predicted);
  json::array nodes;
  for (const HostIndex index : plan.by_rank()) {
    nodes.emplace_back(node_json(plan, index, prediction.nodes[topology::raw(index)]));
  }
  out["nodes"] = std::move(nodes);
  return out;
}

json::object findings_json(const config::Findings& findings) {
  json::array list;
  for (const config::Finding& finding : findings.sorted()) {
    json::object one;
    one["file"] = finding.file;
    one["line"] = finding.at.line;
    one["column"] = finding.at.column;
    one["message"] = finding.message;
    list.emplace_back(std::move(one));
  }
  json::object out;
  out["schema"] = "deltarelay.findings/1";
  out["valid"] = findings.empty();
  out["findings"] = std::move(list);
  return out;
}

}  // namespace deltarelay::relayctl
