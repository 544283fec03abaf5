#include "topology/render.hpp"

#include <array>
#include <cstdio>
#include <vector>

namespace deltarelay::topology {
namespace {

struct Drawing {
  const char *branch, *last_branch, *only_child, *rail, *no_rail;
};
constexpr Drawing unicode_drawing{"├─ ", "└─ ", "↓ ", "│  ", "   "};
constexpr Drawing ascii_drawing{"|- ", "`- ", "v ", "|  ", "   "};

std::string label(const Plan& plan, const PlanNode& node) {
  std::string out = node.name;
  if (!node.parent) return out + "  root  " + node.region + "  " + node.address.text();
  if (node.region_head) {
    out += "  head of " + node.region + "  " + rate_text(node.inbound);
  } else if (node.inbound < plan.node(*node.parent).inbound) {
    out += "  " + rate_text(node.inbound);
  }
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string render_tree(const Plan& plan, Glyphs glyphs) {
  const Drawing& draw = glyphs == Glyphs::unicode ? unicode_drawing : ascii_drawing;
  struct Line {
    HostIndex index;
    std::string lead, below;  ///< before this node, and before its children
  };
  std::vector<Line> stack{{plan.root_index(), "", ""}};
  std::string out;
  while (!stack.empty()) {
    const Line line = std::move(stack.back());
    stack.pop_back();
    const PlanNode& node = plan.node(line.index);
    out += line.lead + label(plan, node) + '\n';
    if (node.children.size() == 1) {
      stack.push_back({node.children[0], line.below + draw.only_child, line.below});
      continue;
    }
    for (std::size_t i = node.children.size(); i-- > 0;) {
      const bool last = i + 1 == node.children.size();
      stack.push_back({node.children[i], line.below + (last ? draw.last_branch : draw.branch),
                       line.below + (last ? draw.no_rail : draw.rail)});
    }
  }
  return out;
}

std::string render_dot(const Model& model, const Plan& plan) {
  std::string out = "digraph plan {\n  rankdir=TB;\n  node [shape=box];\n";
  for (std::size_t r = 0; r < model.regions.size(); ++r) {
    out += "  subgraph cluster_" + std::to_string(r) + " {\n    label=" + quoted(model.regions[r].name) + ";\n";
    for (const HostIndex index : plan.by_rank()) {
      if (raw(model.hosts[raw(index)].region) == r) out += "    " + quoted(plan.node(index).name) + ";\n";
    }
    out += "  }\n";
  }
  for (const HostIndex index : plan.by_rank()) {
    const PlanNode& node = plan.node(index);
    if (!node.parent) continue;
    out += "  " + quoted(plan.node(*node.parent).name) + " -> " + quoted(node.name) +
           " [label=" + quoted(rate_text(node.inbound)) + "];\n";
  }
  return out + "}\n";
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 7> units{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  std::string number = text.data();
  if (number.find('.') != std::string::npos) {
    while (number.back() == '0') number.pop_back();
    if (number.back() == '.') number.pop_back();
  }
  return number + " " + units[unit];
}

std::string rate_text(Rate rate) {
  return bytes_text(rate.bytes_per_second) + "/s";
}

}  // namespace deltarelay::topology
