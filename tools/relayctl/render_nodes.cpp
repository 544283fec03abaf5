// See render_nodes.hpp.
#include "tools/relayctl/render_nodes.hpp"

#include <fmt/format.h>

#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/render_tree.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::NodeRow;
using relay::admin::NodesDocument;

constexpr int bar_cells = 14;

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string age_text(const NodesDocument& document, const NodeRow& row) {
  return row.since ? human_age(document.at - *row.since) : "-";
}

std::string rate_text(const NodeRow& row) {
  return row.rate_bytes_per_second > 0 ? human_rate(row.rate_bytes_per_second) : "-";
}

std::string frames_text(const NodeRow& row) {
  if (codec::raw(row.receiving_version) == 0) return "-";
  const std::string total = row.total_frames == 0 ? "?" : std::to_string(row.total_frames);
  return fmt::format("{}/{}/{}", row.received_frames, row.applied_frames, total);
}

std::string reason_text(const NodeRow& row) {
  if (row.reason) return fmt::format("{}: {}", row.reason->code, row.reason->text);
  return codec::raw(row.undoing_version) != 0 ? undoing_text(row) : "";
}

std::string frame_count(std::uint64_t done, const NodeRow& row) {
  return row.total_frames == 0 ? human_count(done) + " so far"
                               : fmt::format("{} of {}", human_count(done), human_count(row.total_frames));
}

void add_progress(const Context& context, const NodesDocument& document, const NodeRow& row, Table& table) {
  const auto percent = node_percent(row, known_frames(document));
  if (percent) {
    table.add({"progress", bar(*percent / 100.0, bar_cells, context.plain_ascii()) + "  " + human_percent(*percent)});
  }
  if (codec::raw(row.receiving_version) != 0) {
    table.add({"received",
               fmt::format("{} frames, {}", frame_count(row.received_frames, row), human_bytes(row.received_bytes))});
    table.add({"applied", frame_count(row.applied_frames, row) + " frames"});
    table.add({"rate", rate_text(row)});
  }
  if (row.state == "SYNCING") {
    table.add({"synced",
               fmt::format("{} of {} blocks", human_count(row.sync_blocks_done), human_count(row.sync_blocks_total))});
    table.add({"rate", rate_text(row)});
  }
}

std::string children_text(const Context& context, const NodesDocument& document, const NodeRow& parent) {
  Table table({{""}, {""}, {""}, {"", Align::right}, {""}}, "  ");
  for (const NodeRow& row : document.nodes) {
    if (row.actual_parent != parent.name) continue;
    const auto percent = node_percent(row, known_frames(document));
    table.add({row.name + (row.adopted ? "*" : ""), version_text(row.version),
               context.paint(state_style(row), row.state), percent ? human_percent(*percent) : "", reason_text(row)});
  }
  return table.empty() ? "" : "children\n" + table.text();
}

}  // namespace

std::string nodes_text(const Context& context, const NodesDocument& document) {
  std::vector<Table::Column> columns{{"node"},
                                     {"region"},
                                     {"state"},
                                     {"version", Align::right},
                                     {"receiving", Align::right},
                                     {"applied", Align::right},
                                     {"rate", Align::right},
                                     {"parent"},
                                     {"since", Align::right}};
  if (context.wide()) {
    for (const char* title : {"role", "rank", "planned parent", "frames r/a/t", "bytes"}) columns.push_back({title});
  }
  columns.push_back({"reason"});
  Table table(columns);
  const std::uint64_t known = known_frames(document);
  for (const NodeRow& row : document.nodes) {
    const auto percent = node_percent(row, known);
    std::vector<std::string> cells{row.name + (row.adopted ? "*" : ""),
                                   or_dash(row.region),
                                   context.paint(state_style(row), row.state),
                                   version_text(row.version),
                                   version_text(row.receiving_version),
                                   percent ? human_percent(*percent) : "-",
                                   rate_text(row),
                                   or_dash(row.actual_parent),
                                   age_text(document, row)};
    if (context.wide()) {
      cells.insert(cells.end(), {row.role, std::to_string(row.rank), or_dash(row.planned_parent), frames_text(row),
                                 human_bytes(row.received_bytes)});
    }
    cells.push_back(reason_text(row));
    table.add(std::move(cells));
  }
  return table.empty() ? "no such nodes\n" : table.text();
}

std::string node_text(const Context& context, const NodesDocument& document, const NodeRow& row) {
  Table table({{""}, {""}});
  table.add({"node", context.paint(Style::strong, row.name)});
  table.add({"region", or_dash(row.region)});
  table.add({"role", fmt::format("{}, rank {}", row.role, row.rank)});
  std::string state = context.paint(state_style(row), row.state);
  if (row.since) {
    const auto since = std::chrono::floor<std::chrono::seconds>(*row.since);
    state += fmt::format(" since {} ({})", format_time(since, context.utc), age_text(document, row));
  }
  table.add({"state", state});
  if (row.reason) table.add({"reason", reason_text(row)});
  std::string version = version_text(row.version);
  if (row.state == "unreachable")
    version += " when last heard of";
  else if (codec::raw(row.version) < codec::raw(document.committed_version)) {
    version += fmt::format(", behind {}", version_text(document.committed_version));
  }
  table.add({"version", version});
  if (codec::raw(row.undoing_version) != 0) table.add({"undoing", undoing_text(row)});
  if (codec::raw(row.receiving_version) != 0) table.add({"receiving", version_text(row.receiving_version)});
  add_progress(context, document, row, table);
  if (row.role != "root") {
    table.add({"parent", or_dash(row.actual_parent) + (row.adopted ? " (adopted)" : "")});
    table.add({"planned", or_dash(row.planned_parent)});
  }
  return table.text() + children_text(context, document, row);
}

}  // namespace deltarelay::relayctl
