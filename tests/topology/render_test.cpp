// Plans as operators read them.
#include "topology/render.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/topology/sample_models.hpp"

using namespace deltarelay::topology;
using namespace deltarelay::tests;
using namespace std::chrono_literals;

namespace {

/// The root with two hosts beside it, and a region of three behind a link.
Model small_fleet() {
  Model model = one_region(2, 16);
  const RegionIndex far = add_region(model, "b", 100 * mega, 500ms);
  for (std::size_t i = 0; i < 3; ++i) add_host(model, numbered("b", i), far);
  add_link(model, 0, 1, 10 * mega);
  model.regions[0].rtt = 500ms;
  model.refit = {2 * mega, 1};
  return model;
}

Plan plan_of(const Model& model) {
  PlanResult result = make_plan(model);
  REQUIRE(result.plan.has_value());
  return *result.plan;
}

}  // namespace

TEST_SUITE("topology/render") {
  TEST_CASE("a tree: the root, heads with their region and rate, children in rank order") {
    const Plan plan = plan_of(small_fleet());
    CHECK(render_tree(plan, Glyphs::unicode) ==
          "r  root  a  r:7443\n"
          "├─ b0  head of b  10 MB/s\n"
          "│  ├─ b1\n"
          "│  └─ b2\n"
          "├─ h1\n"
          "└─ h2\n");
    CHECK(render_tree(plan, Glyphs::ascii) ==
          "r  root  a  r:7443\n"
          "|- b0  head of b  10 MB/s\n"
          "|  |- b1\n"
          "|  `- b2\n"
          "|- h1\n"
          "`- h2\n");
  }

  TEST_CASE("a chain goes down, not in, however long it is") {
    const Plan chain = plan_of(one_region(3, 1));
    CHECK(render_tree(chain, Glyphs::unicode) == "r  root  a  r:7443\n↓ h1\n↓ h2\n↓ h3\n");
    CHECK(render_tree(chain, Glyphs::ascii) == "r  root  a  r:7443\nv h1\nv h2\nv h3\n");
    const std::string longest = render_tree(plan_of(one_region(2000, 1)), Glyphs::ascii);
    CHECK(std::count(longest.begin(), longest.end(), '\n') == 2001);
    CHECK(longest.size() < 2001 * 16);
  }

  TEST_CASE("every host is on one line of the tree") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const Model model = random_model(seed);
      const PlanResult result = make_plan(model);
      if (!result.plan) continue;
      const std::string tree = render_tree(*result.plan, Glyphs::ascii);
      CAPTURE(seed);
      CHECK(static_cast<std::size_t>(std::count(tree.begin(), tree.end(), '\n')) == model.hosts.size());
    }
  }

  TEST_CASE("a Graphviz digraph with a cluster for each region and a labelled edge for each host") {
    const Model model = small_fleet();
    CHECK(render_dot(model, plan_of(model)) ==
          "digraph plan {\n"
          "  rankdir=TB;\n"
          "  node [shape=box];\n"
          "  subgraph cluster_0 {\n"
          "    label=\"a\";\n"
          "    \"r\";\n"
          "    \"h1\";\n"
          "    \"h2\";\n"
          "  }\n"
          "  subgraph cluster_1 {\n"
          "    label=\"b\";\n"
          "    \"b0\";\n"
          "    \"b1\";\n"
          "    \"b2\";\n"
          "  }\n"
          "  \"r\" -> \"b0\" [label=\"10 MB/s\"];\n"
          "  \"r\" -> \"h1\" [label=\"45 MB/s\"];\n"
          "  \"r\" -> \"h2\" [label=\"45 MB/s\"];\n"
          "  \"b0\" -> \"b1\" [label=\"10 MB/s\"];\n"
          "  \"b0\" -> \"b2\" [label=\"10 MB/s\"];\n"
          "}\n");
  }

  TEST_CASE("sizes and rates have three digits at the most") {
    CHECK(bytes_text(0) == "0 B");
    CHECK(bytes_text(999) == "999 B");
    CHECK(bytes_text(1000) == "1 kB");
    CHECK(bytes_text(1234) == "1.23 kB");
    CHECK(bytes_text(12'345) == "12.3 kB");
    CHECK(bytes_text(123'456) == "123 kB");
    CHECK(bytes_text(999'499) == "999 kB");
    CHECK(bytes_text(999'500) == "1 MB");
    CHECK(bytes_text(9'994'999) == "9.99 MB");
    CHECK(bytes_text(9'996'000) == "10 MB");
    CHECK(bytes_text(99'960'000) == "100 MB");
    CHECK(bytes_text(24'400'000'000) == "24.4 GB");
    CHECK(bytes_text(2'000'000'000'000) == "2 TB");
    CHECK(bytes_text(18'446'744'073'709'551'615u) == "18.4 EB");
    CHECK(rate_text(Rate{381 * mega}) == "381 MB/s");
  }
}
