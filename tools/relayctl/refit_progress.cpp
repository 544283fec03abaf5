// See refit_progress.hpp.
#include "tools/relayctl/refit_progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/joined.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::InFlight;

constexpr int bar_cells = 14;

double scanned_fraction(const InFlight& refit) {
  if (refit.dense_bytes == 0) return refit.phase == "OPEN" ? 0.0 : 1.0;
  return std::clamp(static_cast<double>(refit.scanned_bytes) / static_cast<double>(refit.dense_bytes), 0.0, 1.0);
}

/// Only the root knows what there is to send and since when.
bool told_by_relay(const InFlight& refit) {
  return refit.dense_bytes == 0 && refit.elapsed_seconds == 0;
}

std::chrono::milliseconds as_milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(std::clamp(seconds, 0.0, 1e9) * 1000.0));
}

}  // namespace

double whole_percent(const InFlight& refit, double percent) {
  return std::clamp(percent, 0.0, 100.0) * scanned_fraction(refit);
}

double applied_percent(const InFlight& refit) {
  double sum = 0;
  double nodes = 0;
  for (const auto& region : refit.regions) {
    sum += whole_percent(refit, region.applied_percent) * static_cast<double>(region.nodes_total);
    nodes += static_cast<double>(region.nodes_total);
  }
  return nodes > 0 ? sum / nodes : 0.0;
}

std::optional<std::chrono::milliseconds> time_left(const InFlight& refit) {
  if (refit.phase != "OPEN" && refit.phase != "DISTRIBUTING") return std::nullopt;
  const double done = applied_percent(refit);
  if (done < 5.0 || done >= 100.0 || refit.elapsed_seconds < 1.0) return std::nullopt;
  return as_milliseconds(refit.elapsed_seconds * (100.0 - done) / done);
}

std::string awaited_text(const InFlight& refit) {
  if (!refit.awaited || refit.awaited->first.empty()) return "";
  std::vector<std::string> names;
  for (const auto& one : refit.awaited->first) names.push_back(fmt::format("{} ({})", one.node, one.state));
  std::string text = "waits for " + joined(names, ", ");
  if (refit.awaited->nodes > names.size()) text += fmt::format(" and {} more", refit.awaited->nodes - names.size());
  return text;
}

std::string elapsed_text(const InFlight& refit) {
  if (told_by_relay(refit)) return "";
  std::string text = human_clock(as_milliseconds(refit.elapsed_seconds)) + " elapsed";
  if (const auto left = time_left(refit)) text += ", about " + human_clock(*left) + " left";
  return text;
}

std::string size_text(const InFlight& refit) {
  if (told_by_relay(refit)) return human_bytes(refit.payload_bytes) + " received";
  std::string text =
      fmt::format("{}, {} changed", human_bytes(refit.payload_bytes), human_percent(refit.changed_percent, 2));
  if (refit.scanned_bytes < refit.dense_bytes) {
    text += fmt::format(" so far, {} read", human_percent(scanned_fraction(refit) * 100.0));
  }
  return text;
}

std::string progress_text(const Context& context, const relay::admin::RefitDocument& document) {
  if (!document.refit) return "";
  const InFlight& refit = *document.refit;
  const double done = applied_percent(refit);
  std::string text = fmt::format("{}  {:<12}  {}  {:>5}", version_text(refit.version), refit.phase,
                                 bar(done / 100.0, bar_cells, context.plain_ascii()), human_percent(done));
  if (refit.phase == "DECIDED" || refit.phase == "CLOSED") {
    text += fmt::format("  committed {}/{}", document.nodes_committed, document.nodes_total);
  } else if (document.nodes_prepared > 0) {
    text += fmt::format("  prepared {}/{}", document.nodes_prepared, document.nodes_total);
  }
  if (document.nodes_failed > 0) text += fmt::format("  failed {}", document.nodes_failed);
  text += "  " + human_clock(as_milliseconds(refit.elapsed_seconds));
  if (const auto left = time_left(refit)) text += " (" + human_clock(*left) + " left)";
  if (const std::string awaited = awaited_text(refit); !awaited.empty()) text += "  " + awaited;
  return text;
}

std::string version_text(relay::admin::Version version) {
  return codec::raw(version) == 0 ? "-" : 'v' + std::to_string(codec::raw(version));
}

}  // namespace deltarelay::relayctl
