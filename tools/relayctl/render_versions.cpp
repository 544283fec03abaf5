// See render_versions.hpp.
#include "tools/relayctl/render_versions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::PhaseSeconds;
using relay::admin::VersionRow;

/// A fleet may leave out hundreds of nodes: enough to see which, the JSON has all.
constexpr std::size_t left_out_shown_max = 12;

std::string when_text(const Context& context, const VersionRow& row) {
  return row.at ? format_time(std::chrono::floor<std::chrono::seconds>(*row.at), context.utc) : "-";
}

Style result_style(const std::string& result) {
  return result == "aborted" ? Style::bad : Style::good;
}

std::string left_out_text(const VersionRow& row) {
  std::string text;
  for (std::size_t at = 0; at < row.left_out.size() && at < left_out_shown_max; ++at) {
    text += (at == 0 ? "" : ", ") + row.left_out[at];
  }
  if (row.left_out.size() > left_out_shown_max) {
    text += fmt::format(" and {} more", row.left_out.size() - left_out_shown_max);
  }
  return text;
}

std::string of_dense(std::uint64_t payload, std::uint64_t dense) {
  if (dense == 0) return human_bytes(payload);
  return fmt::format("{} of {} ({})", human_bytes(payload), human_bytes(dense),
                     human_percent(100.0 * static_cast<double>(payload) / static_cast<double>(dense), 2));
}

std::string phases_text(const VersionRow& row) {
  const PhaseSeconds& seconds = row.seconds;
  std::string text = fmt::format("encode {}, distribute {}, prepare {}, ", human_seconds(seconds.encode),
                                 human_seconds(seconds.distribute), human_seconds(seconds.prepare));
  if (row.result == "aborted") return text + "no commit";
  // The span ends with the last node: 0 means that one has not followed yet, not that it took no time.
  return text + (seconds.commit > 0 ? "commit " + human_seconds(seconds.commit) : "commit still open");
}

/// The image that the fleet started from was never sent: it has neither a size nor a duration.
bool was_sent(const VersionRow& row) {
  return row.result != "first";
}

/// A fleet that has just started may not have counted the nodes of its first version.
std::string nodes_text(const VersionRow& row) {
  return row.nodes_total == 0 ? "-" : fmt::format("{}/{}", row.nodes_committed, row.nodes_total);
}

}  // namespace

double total_seconds(const PhaseSeconds& seconds) {
  // Distributing begins with the first frame and preparing with the last one encoded: the three overlap.
  return std::max(seconds.encode + seconds.prepare, seconds.distribute) + seconds.commit;
}

std::string versions_text(const Context& context, const relay::admin::VersionsDocument& document) {
  std::vector<Table::Column> columns{
      {"version", Align::right}, {"base", Align::right}, {"at"},     {"sent", Align::right},
      {"changed", Align::right}, {"took", Align::right}, {"result"}, {"nodes", Align::right},
      {"left out", Align::right}};
  if (context.wide()) {
    for (const char* title : {"encode", "distribute", "prepare", "commit"}) columns.push_back({title, Align::right});
  }
  columns.push_back({"why"});
  Table table(columns);
  for (const VersionRow& row : document.versions) {
    const bool sent = was_sent(row);
    std::vector<std::string> cells{version_text(row.version),
                                   version_text(row.base),
                                   when_text(context, row),
                                   sent ? human_bytes(row.payload_bytes) : "-",
                                   sent ? human_percent(row.changed_percent, 2) : "-",
                                   sent ? human_seconds(total_seconds(row.seconds)) : "-",
                                   context.paint(result_style(row.result), row.result),
                                   nodes_text(row),
                                   row.left_out.empty() ? "-" : std::to_string(row.left_out.size())};
    if (context.wide()) {
      for (const double phase : {row.seconds.encode, row.seconds.distribute, row.seconds.prepare, row.seconds.commit}) {
        cells.push_back(phase > 0 ? human_seconds(phase) : "-");
      }
    }
    cells.push_back(row.why);
    table.add(std::move(cells));
  }
  return table.empty() ? "no version yet\n" : table.text();
}

std::string version_page(const Context& context, const relay::admin::VersionDocument& document) {
  const VersionRow& row = document.version;
  Table table({{""}, {""}});
  table.add({"version", context.paint(Style::strong, version_text(row.version))});
  table.add({"base", version_text(row.base)});
  table.add({"result", context.paint(result_style(row.result), row.result)});
  if (!row.why.empty()) table.add({"why", row.why});
  table.add(
      {"at", row.at ? fmt::format("{} ({} ago)", when_text(context, row), human_age(document.at - *row.at)) : "-"});
  table.add({"nodes", nodes_text(row)});
  if (!row.left_out.empty()) table.add({"left out", left_out_text(row)});
  if (was_sent(row)) {
    table.add({"sent", of_dense(row.payload_bytes, row.dense_bytes)});
    table.add({"changed", human_percent(row.changed_percent, 2)});
    table.add({"took", fmt::format("{}: {}", human_seconds(total_seconds(row.seconds)), phases_text(row))});
  }
  return table.text();
}

std::string outcome_text(const Context& context, const VersionRow& row) {
  std::string text =
      fmt::format("{}  {}  {}/{} nodes  {}, {} changed\n", context.paint(result_style(row.result), row.result),
                  version_text(row.version), row.nodes_committed, row.nodes_total,
                  of_dense(row.payload_bytes, row.dense_bytes), human_percent(row.changed_percent, 2));
  text += fmt::format("  took {}: {}\n", human_seconds(total_seconds(row.seconds)), phases_text(row));
  if (!row.left_out.empty()) text += fmt::format("  left out {}\n", left_out_text(row));
  return text;
}

VersionRow row_of(const relay::admin::RefitDocument& document) {
  VersionRow row;
  if (document.refit) {
    row.version = document.refit->version;
    row.base = document.refit->base;
    row.dense_bytes = document.refit->dense_bytes;
    row.payload_bytes = document.refit->payload_bytes;
    row.changed_percent = document.refit->changed_percent;
  }
  row.at = document.at;
  row.seconds = document.seconds;
  row.result = document.result;
  row.why = document.why;
  row.nodes_committed = document.nodes_committed;
  row.nodes_total = document.nodes_total;
  row.left_out = document.left_out;
  return row;
}

std::string dry_run_text(const relay::admin::PublishDocument& document) {
  Table table({{""}, {""}});
  table.add({"dry run", fmt::format("{}  base {}; nothing was sent", version_text(document.version),
                                    version_text(document.base))});
  table.add({"to send", of_dense(document.payload_bytes, document.dense_bytes)});
  table.add({"changed", human_percent(document.changed_percent, 2)});
  table.add({"predicted", document.predicted_seconds > 0 ? human_seconds(document.predicted_seconds) : "-"});
  return table.text();
}

}  // namespace deltarelay::relayctl
