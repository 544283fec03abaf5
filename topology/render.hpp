// A plan as operators read it: a tree in text, or Graphviz.
//
// Layer: topology. Pure; the output is under golden tests.
#pragma once

#include <string>

#include "topology/model.hpp"
#include "topology/plan.hpp"

namespace deltarelay::topology {

enum class Glyphs { unicode, ascii };

/// One line per node. An only child stands below its parent behind an arrow and not further in, so that a chain of a
/// thousand hosts stays readable. Ends with a line end.
[[nodiscard]] std::string render_tree(const Plan& plan, Glyphs glyphs);
/// A digraph with one cluster per region.
[[nodiscard]] std::string render_dot(const Model& model, const Plan& plan);

/// Three digits and a unit of 1000: "381 MB/s".
[[nodiscard]] std::string rate_text(Rate rate);
/// Three digits and a unit of 1000: "24.4 GB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

}  // namespace deltarelay::topology
