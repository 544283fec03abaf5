// See render_verify.hpp.
#include "tools/relayctl/render_verify.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/joined.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::VerifyDocument;
using relay::admin::VerifyRow;

bool is_wrong(const VerifyRow& row) {
  return row.result == "damaged" || row.result == "failed";
}

/// The names of the nodes of which `wanted` holds.
template <class Wanted>
std::vector<std::string> names_of(const VerifyDocument& document, const Wanted& wanted) {
  std::vector<std::string> names;
  for (const VerifyRow& row : document.nodes)
    if (wanted(row)) names.push_back(row.node);
  return names;
}
std::vector<std::string> with_result(const VerifyDocument& document, std::string_view result) {
  return names_of(document, [&](const VerifyRow& row) { return row.result == result; });
}

double percent_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string shown_result(const VerifyRow& row) {
  if (!row.result.empty()) return row.result;
  return row.state == "READING"
             ? fmt::format("reading {}", human_percent(percent_of(row.checked_bytes, row.total_bytes)))
         : row.state == "WAITING" ? "waiting"
                                  : "asked";
}

Style style_of(const VerifyRow& row) {
  if (row.result == "ok") return Style::good;
  return is_wrong(row) || row.result == "unreachable" ? Style::bad : Style::warning;
}

std::string damaged_blocks_text(const VerifyDocument& document) {
  std::string text;
  for (const VerifyRow& row : document.nodes) {
    for (const auto& damaged : row.damaged)
      text += fmt::format("{}  block {} of {}\n", row.node, damaged.block, damaged.tensor);
    if (!row.damaged.empty() && row.damaged_blocks > row.damaged.size())
      text += fmt::format("{}  and {} more\n", row.node, row.damaged_blocks - row.damaged.size());
  }
  return text;
}

}  // namespace

std::string verify_text(const Context& context, const VerifyDocument& document) {
  Table table({{"node"},
               {"result"},
               {"version", Align::right},
               {"read", Align::right},
               {"damaged blocks", Align::right},
               {"took", Align::right},
               {""}});
  for (const VerifyRow& row : document.nodes) {
    const bool answered = row.result == "ok" || is_wrong(row);
    table.add({row.node, context.paint(style_of(row), shown_result(row)), version_text(row.version),
               answered ? human_bytes(row.checked_bytes) : "-", answered ? std::to_string(row.damaged_blocks) : "-",
               answered ? human_seconds(row.seconds) : "-", row.text});
  }
  const std::size_t ok = with_result(document, "ok").size();
  const std::size_t busy = with_result(document, "busy").size();
  const std::size_t unfinished = with_result(document, "").size();
  std::string out = table.text();
  if (context.wide()) out += damaged_blocks_text(document);
  out += fmt::format("{} of {} images ok, {} not, {} not asked", ok, document.nodes.size(),
                     names_of(document, is_wrong).size(), with_result(document, "unreachable").size());
  if (busy != 0) out += fmt::format(", {} busy", busy);
  if (unfinished != 0) out += fmt::format(", {} not finished", unfinished);
  return out + fmt::format(" ({})\n", document.deep ? "every byte read" : "sizes and ledger; --deep reads every byte");
}

std::string verify_progress_text(const VerifyDocument& document) {
  const std::size_t unfinished = with_result(document, "").size();
  std::string text = fmt::format("{} of {} nodes done", document.nodes.size() - unfinished, document.nodes.size());
  std::uint64_t checked = 0, total = 0;
  const VerifyRow* last = nullptr;
  for (const VerifyRow& row : document.nodes) {
    checked += std::min(row.checked_bytes, row.total_bytes);
    total += row.total_bytes;
    if (!row.result.empty()) continue;
    if (last == nullptr ||
        percent_of(row.checked_bytes, row.total_bytes) < percent_of(last->checked_bytes, last->total_bytes))
      last = &row;
  }
  if (document.deep && total != 0) text += fmt::format(", {} read", human_percent(percent_of(checked, total)));
  if (last != nullptr) text += fmt::format(", last {} {}", last->node, shown_result(*last));
  if (last != nullptr && !last->text.empty()) text += fmt::format(" ({})", last->text);
  return text;
}

ExitCode verify_exit(const VerifyDocument& document) {
  if (!names_of(document, is_wrong).empty()) return ExitCode::failed;
  // No row at all is no proof of anything.
  if (!with_result(document, "unreachable").empty() || document.nodes.empty()) return ExitCode::unreachable;
  // What a newer daemon calls by another word is no proof either.
  return with_result(document, "ok").size() == document.nodes.size() ? ExitCode::ok : ExitCode::timed_out;
}

std::vector<VerifyComplaint> verify_complaints(const VerifyDocument& document) {
  std::vector<VerifyComplaint> out;
  for (const VerifyRow& row : document.nodes) {
    if (row.result == "damaged")
      out.push_back(
          {ExitCode::failed, row.node + ": the image is not what its ledger states", row.text,
           "restart its relayd, which hashes the image and fetches what differs from its parent; a root needs "
           "the checkpoint of its version put back"});
    if (row.result == "failed")
      out.push_back({ExitCode::failed, row.node + ": the image could not be read", row.text,
                     "the file that is named, and relayd's log on " + row.node});
  }
  if (const auto away = with_result(document, "unreachable"); !away.empty())
    out.push_back({ExitCode::unreachable, "not every node could be asked", joined(away, ", "), "relayctl health"});
  if (const auto busy = with_result(document, "busy"); !busy.empty())
    out.push_back({ExitCode::timed_out, "images that are being written cannot be verified", joined(busy, ", "),
                   "relayctl wait converged, then relayctl verify again"});
  if (const auto unfinished = with_result(document, ""); !unfinished.empty())
    out.push_back({ExitCode::timed_out, "the time is over before every node has finished", joined(unfinished, ", "),
                   "a longer --timeout; the round itself goes on"});
  return out;
}

}  // namespace deltarelay::relayctl
