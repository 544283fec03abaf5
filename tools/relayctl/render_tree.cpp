// See render_tree.hpp. A branch is one char a level: '|' a line that goes on, ' ' none, 't' a child with siblings
// below it, 'l' the last child.
#include "tools/relayctl/render_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/joined.hpp"
#include "tools/relayctl/refit_progress.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

using relay::admin::NodeRow;
using relay::admin::NodesDocument;

constexpr int bar_cells = 14;

class Forest {
 public:
  Forest(const NodesDocument& document, const TreeView& view) : view_(view) {
    for (const NodeRow& row : document.nodes) by_name_.emplace(row.name, &row);
    for (const NodeRow& row : document.nodes) {
      const std::string parent = parent_of(row);
      if (!parent.empty()) {
        children_[parent].push_back(&row);
      } else {
        tops_.push_back(&row);
      }
    }
    if (!view.node.empty()) {
      const auto start = by_name_.find(view.node);
      tops_.clear();
      if (start != by_name_.end()) tops_.push_back(start->second);
    }
  }

  std::vector<TreeRow> rows(const NodesDocument& document) {
    for (const NodeRow* top : tops_) mark(*top);
    for (const NodeRow* top : tops_) draw(*top, "", 0);
    if (view_.node.empty()) {
      // What no path from a top reaches sits in a ring of reports that have overtaken each other.
      for (const NodeRow& row : document.nodes) {
        if (marked_.count(row.name) != 0) continue;
        mark(row);
        draw(row, "", 0);
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string parent_of(const NodeRow& row) const {
    if (!row.actual_parent.empty() && by_name_.count(row.actual_parent) != 0) return row.actual_parent;
    if (by_name_.count(row.planned_parent) != 0) return row.planned_parent;
    return "";
  }

  [[nodiscard]] bool matches(const NodeRow& row) const {
    return (view_.region.empty() || row.region == view_.region) && (!view_.problems || has_problem(row));
  }

  /// Depth first: which nodes belong to the picture. The recursion is as deep as the tree, and each node is entered
  /// once.
  bool mark(const NodeRow& row) {
    if (!marked_.insert(row.name).second) return false;
    bool wanted = matches(row);
    for (const NodeRow* child : children_[row.name]) wanted = mark(*child) || wanted;
    if (wanted) shown_.insert(row.name);
    return wanted;
  }

  std::size_t count_below(const NodeRow& row) {
    std::size_t count = 0;
    for (const NodeRow* child : children_[row.name]) {
      if (shown_.count(child->name) != 0 && drawn_.insert(child->name).second) count += 1 + count_below(*child);
    }
    return count;
  }

  void draw(const NodeRow& row, const std::string& branch, std::uint32_t depth) {
    if (shown_.count(row.name) == 0 || !drawn_.insert(row.name).second) return;
    TreeRow out{&row, branch, 0};
    if (view_.depth && depth >= *view_.depth) {
      out.folded = count_below(row);
      out_.push_back(std::move(out));
      return;
    }
    out_.push_back(std::move(out));
    std::vector<const NodeRow*> below;
    for (const NodeRow* child : children_[row.name]) {
      if (shown_.count(child->name) != 0 && drawn_.count(child->name) == 0) below.push_back(child);
    }
    std::string line = branch;
    if (!line.empty()) line.back() = line.back() == 't' ? '|' : ' ';
    for (const NodeRow* child : below) draw(*child, line + (child == below.back() ? 'l' : 't'), depth + 1);
  }

  const TreeView& view_;
  std::map<std::string, const NodeRow*> by_name_;
  std::map<std::string, std::vector<const NodeRow*>> children_;
  std::vector<const NodeRow*> tops_;
  std::set<std::string> marked_, shown_, drawn_;
  std::vector<TreeRow> out_;
};

std::string lines(const std::string& branch, bool ascii) {
  std::string text;
  for (const char level : branch) {
    switch (level) {
      case '|':
        text += ascii ? "|  " : "│  ";
        break;
      case 't':
        text += ascii ? "|- " : "├─ ";
        break;
      case 'l':
        text += ascii ? "`- " : "└─ ";
        break;
      default:
        text += "   ";
        break;
    }
  }
  return text;
}

std::string versions(const Context& context, const NodeRow& row) {
  const char* const arrow = context.plain_ascii() ? "->" : "→";
  if (codec::raw(row.undoing_version) != 0)
    return fmt::format("{} {} {}", version_text(row.undoing_version), arrow, version_text(row.version));
  if (codec::raw(row.receiving_version) == 0) return version_text(row.version);
  return fmt::format("{} {} {}", version_text(row.version), arrow, version_text(row.receiving_version));
}

/// Frames that somebody has and this node does not.
std::string lag(const NodesDocument& document, const NodeRow& row, std::uint64_t known) {
  if (row.role == "root" || codec::raw(row.receiving_version) == 0 || row.state == "unreachable") return "";
  if (row.receiving_version != document.in_flight_version || row.received_frames >= known) return "";
  return fmt::format("lag {} {}", human_count(known - row.received_frames),
                     known - row.received_frames == 1 ? "frame" : "frames");
}

std::string remarks(const NodesDocument& document, const TreeRow& item) {
  const NodeRow& row = *item.row;
  std::vector<std::string> parts;
  if (row.role == "root") parts.emplace_back(applies_last(row) ? "root, applies last" : "root");
  if (codec::raw(row.undoing_version) != 0) parts.push_back(undoing_text(row));
  if (row.adopted) {
    parts.push_back(row.planned_parent.empty() ? "adopted"
                                               : fmt::format("adopted, planned below {}", row.planned_parent));
  }
  if (codec::raw(row.version) < codec::raw(document.committed_version) && row.state != "unreachable") {
    parts.push_back("behind " + version_text(document.committed_version));
  }
  if (row.state == "unreachable" && row.since) {
    parts.push_back("for " + human_age(document.at - *row.since));
  }
  if (row.reason) parts.push_back(fmt::format("{}: {}", row.reason->code, row.reason->text));
  if (item.folded > 0) parts.push_back(fmt::format("{} more below", item.folded));
  return joined(parts, "; ");
}

}  // namespace

bool applies_last(const NodeRow& row) {
  return row.role == "root" && codec::raw(row.receiving_version) != 0 && row.applied_frames == 0;
}

std::string undoing_text(const NodeRow& row) {
  return fmt::format("{} was aborted, {} is put back", version_text(row.undoing_version), version_text(row.version));
}

bool has_problem(const NodeRow& row) {
  return row.adopted || row.reason.has_value() || row.state == "FAILED" || row.state == "unreachable";
}

Style state_style(const NodeRow& row) {
  if (row.state == "FAILED" || row.state == "unreachable") return Style::bad;
  return has_problem(row) ? Style::warning : Style::plain;
}

std::uint64_t known_frames(const NodesDocument& document) {
  std::uint64_t known = 0;
  for (const NodeRow& row : document.nodes) {
    if (row.receiving_version == document.in_flight_version) {
      known = std::max({known, row.total_frames, row.received_frames});
    }
  }
  return known;
}

std::optional<double> node_percent(const NodeRow& row, std::uint64_t known) {
  const auto share = [](std::uint64_t done, std::uint64_t total) {
    return std::min(100.0, 100.0 * static_cast<double>(done) / static_cast<double>(total));
  };
  if (row.state == "SYNCING") {
    return row.sync_blocks_total == 0 ? 0.0 : share(row.sync_blocks_done, row.sync_blocks_total);
  }
  if (codec::raw(row.receiving_version) == 0 || applies_last(row)) return std::nullopt;
  if (row.total_frames > 0) return share(row.applied_frames, row.total_frames);
  // The number of frames is not known yet: whatever the share of those known, the refit is not complete.
  return known == 0 ? 0.0 : std::min(99.0, share(row.applied_frames, known));
}

std::vector<TreeRow> tree_rows(const NodesDocument& document, const TreeView& view) {
  return Forest(document, view).rows(document);
}

std::string tree_text(const Context& context, const NodesDocument& document, const TreeView& view) {
  Table table({{""}, {""}, {""}, {""}, {"", Align::right}, {"", Align::right}, {"", Align::right}, {""}});
  const std::uint64_t known = known_frames(document);
  bool adopted = false;
  for (const TreeRow& item : tree_rows(document, view)) {
    const NodeRow& row = *item.row;
    adopted = adopted || row.adopted;
    const auto percent = node_percent(row, known);
    const std::string state = row.state == "unreachable" ? "DOWN" : row.state;
    table.add({lines(item.branch, context.plain_ascii()) + row.name + (row.adopted ? "*" : ""), versions(context, row),
               context.paint(state_style(row), state),
               percent ? bar(*percent / 100.0, bar_cells, context.plain_ascii()) : "",
               percent ? human_percent(*percent) : "",
               row.rate_bytes_per_second > 0 ? human_rate(row.rate_bytes_per_second) : "", lag(document, row, known),
               remarks(document, item)});
  }
  if (table.empty()) return view.problems ? "no node has a problem\n" : "";
  return table.text() + (adopted ? "* attached to another parent than planned\n" : "");
}

}  // namespace deltarelay::relayctl
