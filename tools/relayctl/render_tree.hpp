// The tree as it is: who is attached to whom, how far each node is, and where that differs from the plan. Pure.
//
// A node hangs below the parent that it has; one without a link hangs below its planned parent, marked. Rows are a
// snapshot of reports that travel, so they may contradict each other: a node that is reached twice is drawn once, and
// nodes that no path from the root reaches are drawn after the tree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

/// What of the tree to show. Ancestors of what matches stay, so that the rest has its place.
struct TreeView {
  std::string node;                    ///< only this one and what is below it
  std::optional<std::uint32_t> depth;  ///< levels below the first one
  std::string region;
  bool problems = false;
};

/// The rows that the view holds, in drawing order.
struct TreeRow {
  const relay::admin::NodeRow* row = nullptr;
  std::string branch;      ///< the lines to the left of the name, without glyphs: one char a level, see render_tree.cpp
  std::size_t folded = 0;  ///< nodes below that `depth` hides
};

/// The rows point into `document`.
[[nodiscard]] std::vector<TreeRow> tree_rows(const relay::admin::NodesDocument& document, const TreeView& view);
std::vector<TreeRow> tree_rows(relay::admin::NodesDocument&& document, const TreeView& view) = delete;
[[nodiscard]] std::string tree_text(const Context& context, const relay::admin::NodesDocument& document,
                                    const TreeView& view);

/// A root in a refit that it has not begun to apply: its base is what abort and encoding need.
[[nodiscard]] bool applies_last(const relay::admin::NodeRow& row);
/// `v5 was aborted, v4 is put back`. REQUIRES an undoing_version.
[[nodiscard]] std::string undoing_text(const relay::admin::NodeRow& row);

/// Attached elsewhere than planned, failed, unreachable, or with a reason to say.
[[nodiscard]] bool has_problem(const relay::admin::NodeRow& row);
[[nodiscard]] Style state_style(const relay::admin::NodeRow& row);

/// Percent of the refit or sync that `row` has applied. `known_frames`: of the refit, as far as anybody knows; used
/// while the end of the encoding has not reached the node. Empty when the node receives nothing, or applies last.
[[nodiscard]] std::optional<double> node_percent(const relay::admin::NodeRow& row, std::uint64_t known_frames);
[[nodiscard]] std::uint64_t known_frames(const relay::admin::NodesDocument& document);

}  // namespace deltarelay::relayctl
