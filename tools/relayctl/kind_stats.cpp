#include "tools/relayctl/kind_stats.hpp"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <cassert>
#include <cmath>

#include "codec/record.hpp"
#include "tools/relayctl/delta_summary.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/joined.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;

double ratio(std::uint64_t part, double whole) {
  return whole > 0 ? static_cast<double>(part) / whole : 0;
}

/// A bound of less than a byte divides into nothing that could be read.
std::string times(std::uint64_t payload, double bound) {
  return bound < 1 ? "-" : fmt::format("{:.3f}", static_cast<double>(payload) / bound);
}

std::string encodings_line(const codec::FrameStats& sent) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < codec::encoding_count; ++i) {
    if (sent.blocks_by_encoding[i] == 0) continue;
    parts.push_back(fmt::format("{} {}", codec::encoding_name(static_cast<codec::Encoding>(i)),
                                human_bytes(sent.payload_bytes_by_encoding[i])));
  }
  return joined(parts, ", ");
}

json::object row_json(TensorKind kind, const KindStats& stats) {
  const std::uint64_t changed = stats.changes.changed(), payload = stats.payload_bytes();
  const ChangeBounds bounds = stats.changes.bounds();
  json::object row;
  row["kind"] = tensor_kind_name(kind);
  row["tensors"] = stats.tensors;
  row["dense_bytes"] = stats.dense_bytes;
  row["elements"] = stats.changes.elements();
  row["changed_elements"] = changed;
  row["changed_fraction"] = ratio(changed, static_cast<double>(stats.changes.elements()));
  row["changed_blocks"] = stats.sent.changed_blocks;
  row["payload_bytes"] = payload;
  row["dense_fraction"] = ratio(payload, static_cast<double>(stats.dense_bytes));
  // Null where there is nothing to divide by: a zero would read as "free".
  row["bytes_per_changed_element"] =
      changed == 0 ? json::value(nullptr) : json::value(ratio(payload, static_cast<double>(changed)));
  row["encodings"] = encodings_json(stats.sent);
  row["overhead_bytes"] = stats.sent.overhead_bytes;
  row["order0_bound_bytes"] = std::ceil(bounds.order0_bytes);
  row["given_exponent_bound_bytes"] = std::ceil(bounds.given_exponent_bytes);
  return row;
}

}  // namespace

std::uint64_t KindStats::payload_bytes() const noexcept {
  std::uint64_t out = sent.overhead_bytes;
  for (const std::uint64_t bytes : sent.payload_bytes_by_encoding) out += bytes;
  return out;
}

KindTable::KindTable(const codec::Layout& layout) {
  for (const codec::TensorSpec& tensor : layout.tensors()) {
    kinds_.push_back(tensor_kind(tensor.name));
    KindStats& stats = stats_[static_cast<std::size_t>(kinds_.back())];
    ++stats.tensors;
    stats.dense_bytes += tensor.bytes;
  }
}

void KindTable::add_frame(codec::Bytes payload) {
  const auto view = codec::FrameView::parse(payload);
  assert(view.has_value());
  std::uint64_t left = codec::record_header_bytes + payload.size();
  std::uint64_t entries_bytes = payload.size() - view->tables.size();
  for (const codec::FrameEntry& entry : view->entries) entries_bytes -= entry.data.size();
  // Entries of a frame differ by a byte or two: each is charged their mean.
  const std::uint64_t entry_bytes = entries_bytes / view->entries.size();
  for (const codec::FrameEntry& entry : view->entries) {
    codec::FrameStats& sent = stats_[static_cast<std::size_t>(kind_of(entry.id.tensor))].sent;
    const auto encoding = static_cast<std::size_t>(entry.encoding);
    ++sent.changed_blocks;
    ++sent.blocks_by_encoding[encoding];
    sent.payload_bytes_by_encoding[encoding] += entry.data.size();
    sent.overhead_bytes += entry_bytes;
    left -= entry.data.size() + entry_bytes;
  }
  shared_bytes_ += left;
}

void KindTable::merge(const KindChanges& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) stats_[i].changes.merge(changes[i]);
}

ChangeStats KindTable::changes() const {
  ChangeStats out;
  for (const KindStats& stats : stats_) out.merge(stats.changes);
  return out;
}

json::array KindTable::json() const {
  json::array out;
  for (std::size_t i = 0; i < stats_.size(); ++i)
    if (stats_[i].tensors > 0) out.push_back(row_json(static_cast<TensorKind>(i), stats_[i]));
  return out;
}

std::string KindTable::text() const {
  Table table({{"kind"},
               {"dense", Align::right},
               {"changed", Align::right},
               {"sent", Align::right},
               {"of dense", Align::right},
               {"B/change", Align::right},
               {"/ order 0", Align::right},
               {"/ given exp.", Align::right},
               {"by encoding"}});
  for (std::size_t i = 0; i < stats_.size(); ++i) {
    const KindStats& stats = stats_[i];
    if (stats.tensors == 0) continue;
    const std::uint64_t changed = stats.changes.changed(), payload = stats.payload_bytes();
    const ChangeBounds bounds = stats.changes.bounds();
    table.add({std::string(tensor_kind_name(static_cast<TensorKind>(i))), human_bytes(stats.dense_bytes),
               human_percent(100 * ratio(changed, static_cast<double>(stats.changes.elements())), 2),
               human_bytes(payload), human_percent(100 * ratio(payload, static_cast<double>(stats.dense_bytes)), 3),
               changed == 0 ? "-" : fmt::format("{:.3f}", ratio(payload, static_cast<double>(changed))),
               times(payload, bounds.order0_bytes), times(payload, bounds.given_exponent_bytes),
               encodings_line(stats.sent)});
  }
  table.add({"shared", "", "", human_bytes(shared_bytes_), "", "", "", "", "tables and headers of frames"});
  return table.text();
}

}  // namespace deltarelay::relayctl
