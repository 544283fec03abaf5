// See render_verify.hpp.
#include "tools/relayctl/render_verify.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::VerifyDocument;
using relay::admin::VerifyRow;

std::size_t count(const VerifyDocument& document, std::string_view result) {
  return static_cast<std::size_t>(std::count_if(document.nodes.begin(), document.nodes.end(),
                                                [&](const VerifyRow& row) { return row.result == result; }));
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
    const bool answered = row.result != "unreachable";
    table.add({row.node, context.paint(row.result == "ok" ? Style::good : Style::bad, row.result),
               version_text(row.version), answered ? human_bytes(row.checked_bytes) : "-",
               answered ? std::to_string(row.damaged_blocks) : "-", answered ? human_seconds(row.seconds) : "-",
               row.text});
  }
  const std::size_t ok = count(document, "ok");
  const std::size_t unreachable = count(document, "unreachable");
  return table.text() + fmt::format("{} of {} images ok, {} not, {} not asked ({})\n", ok, document.nodes.size(),
                                    document.nodes.size() - ok - unreachable, unreachable,
                                    document.deep ? "every byte read" : "sizes and ledger; --deep reads every byte");
}

ExitCode verify_exit(const VerifyDocument& document) {
  const std::size_t ok = count(document, "ok");
  const std::size_t unreachable = count(document, "unreachable");
  if (ok + unreachable < document.nodes.size()) return ExitCode::failed;
  // No row at all is no proof of anything.
  if (unreachable > 0 || document.nodes.empty()) return ExitCode::unreachable;
  return ExitCode::ok;
}

}  // namespace deltarelay::relayctl
