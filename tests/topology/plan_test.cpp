// The planner: a pure function whose plans keep the invariants for every model, and the choices that it makes.
#include "topology/plan.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "tests/topology/plan_invariants.hpp"
#include "tests/topology/sample_models.hpp"
#include "topology/cost.hpp"

using namespace deltarelay::topology;
using namespace deltarelay::tests;
using namespace std::chrono_literals;

namespace {

Plan plan_of(const Model& model) {
  PlanResult result = make_plan(model);
  for (const PlanProblem& problem : result.problems) MESSAGE(problem.message);
  REQUIRE(result.plan.has_value());
  return *result.plan;
}

std::string parent_of(const Plan& plan, const std::string& name) {
  const PlanNode* node = plan.find(name);
  REQUIRE(node != nullptr);
  return node->parent ? plan.node(*node->parent).name : "";
}

/// Names of a node's candidates in order.
std::string candidates_of(const Plan& plan, const std::string& name) {
  std::string out;
  for (const Candidate& candidate : plan.candidates(name)) out.append(out.empty() ? "" : " ").append(candidate.name);
  return out;
}

/// Regions "a" with the root, "b" and "c", with `hosts` hosts more in each, all joined.
Model three_regions(std::size_t hosts) {
  Model model = one_region(hosts, 16);
  for (const std::string name : {"b", "c"}) {
    const RegionIndex region = add_region(model, name, 100 * mega);
    for (std::size_t i = 0; i <= hosts; ++i) add_host(model, numbered(name, i), region);
  }
  add_link(model, 0, 1, 50 * mega);
  add_link(model, 0, 2, 20 * mega);
  add_link(model, 1, 2, 30 * mega);
  return model;
}

}  // namespace

TEST_SUITE("topology/plan") {
  TEST_CASE("a root alone is a plan") {
    const Model model = one_region(0, 16);
    const Plan plan = plan_of(model);
    check_plan(model, plan);
    CHECK(plan.root().name == "r");
    CHECK(plan.root().region_head);
    CHECK(plan.candidates("r").empty());
    CHECK(plan.find("nobody") == nullptr);
    CHECK(plan.candidates("nobody").empty());
  }

  TEST_CASE("plans of random models keep every invariant, or there are problems that say why") {
    std::size_t planned = 0;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
      CAPTURE(seed);
      const Model model = random_model(seed);
      const PlanResult result = make_plan(model);
      REQUIRE(result.plan.has_value() == result.problems.empty());
      for (const PlanProblem& problem : result.problems) {
        CHECK_FALSE(problem.message.empty());
        CHECK(problem.index <
              (problem.subject == PlanProblem::Subject::region ? model.regions.size() : model.hosts.size()));
      }
      if (!result.plan) continue;
      ++planned;
      check_plan(model, *result.plan);
      const Prediction prediction = predict(model, *result.plan, model.refit);
      CHECK(prediction.efficiency <= 1.0);
      CHECK(prediction.efficiency > 0.0);
    }
    CHECK(planned > 500);
    CHECK(planned < 3000);
  }

  TEST_CASE("a model whose regions are joined and whose hosts may all have children always has a plan") {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      CAPTURE(seed);
      Model model = random_model(seed);
      for (Host& host : model.hosts) {
        host.max_children = std::max(host.max_children, 2u);
        host.uplink = std::max(host.uplink, Rate{1000});
      }
      for (std::size_t r = 1; r < model.regions.size(); ++r) add_link(model, r - 1, r, mega);
      for (Link& link : model.links) link.transit = true;
      const PlanResult result = make_plan(model);
      for (const PlanProblem& problem : result.problems) MESSAGE(problem.message);
      REQUIRE(result.plan.has_value());
      check_plan(model, *result.plan);
    }
  }

  TEST_CASE("one model has one plan") {
    const Plan one = plan_of(three_regions(9)), other = plan_of(three_regions(9));
    CHECK(one.digest() == other.digest());
    for (std::size_t i = 0; i < one.nodes().size(); ++i) {
      CHECK(one.nodes()[i].parent == other.nodes()[i].parent);
      CHECK(one.nodes()[i].candidates == other.nodes()[i].candidates);
      CHECK(one.nodes()[i].inbound == other.nodes()[i].inbound);
    }
  }

  TEST_CASE("the digest changes with the plan and not with what is beside it") {
    const Model model = three_regions(4);
    const std::string digest = plan_of(model).digest();
    const auto digest_after = [&](const std::function<void(Model&)>& change) {
      Model changed = model;
      change(changed);
      return plan_of(changed).digest();
    };
    CHECK(digest_after([](Model& m) { m.plan_epoch = 99; }) == digest);
    CHECK(digest_after([](Model& m) { m.hosts[3].labels = {{"rack", "a"}}; }) == digest);
    CHECK(digest_after([](Model& m) { m.standby = {HostIndex{1}}; }) == digest);
    CHECK(digest_after([](Model& m) { m.mesh = "other"; }) != digest);
    CHECK(digest_after([](Model& m) { m.hosts[3].address.port = 1; }) != digest);
    CHECK(digest_after([](Model& m) { m.hosts[3].name = "new"; }) != digest);
    CHECK(digest_after([](Model& m) { m.regions[1].name = "bb"; }) != digest);
    CHECK(digest_after([](Model& m) { m.root = HostIndex{2}; }) != digest);
    CHECK(digest_after([](Model& m) { m.hosts.pop_back(); }) != digest);
    CHECK(digest_after([](Model& m) { m.links[0].rate.bytes_per_second /= 3; }) != digest);
    CHECK(digest_after([](Model& m) { m.limits.max_candidates = 2; }) != digest);
  }

  TEST_CASE("every region is entered over the widest path") {
    const Plan plan = plan_of(three_regions(3));
    CHECK(plan.find("b0")->region_head);
    CHECK(plan.find("c0")->region_head);
    CHECK(plan.node(*plan.find("b0")->parent).region == "a");
    // 20 MB/s directly, 30 MB/s over b.
    CHECK(plan.node(*plan.find("c0")->parent).region == "b");
  }

  TEST_CASE("between paths of one width fewer regions, then the shorter way, then the cheaper one decide") {
    Model model = three_regions(1);
    for (Link& link : model.links) link.rate = Rate{10 * mega};
    CHECK(plan_of(model).find("c0")->depth <= 2);
    CHECK(plan_of(model).node(*plan_of(model).find("c0")->parent).region == "a");

    // d is reached over b or over c, by equally many regions.
    const RegionIndex region = add_region(model, "d", 100 * mega);
    add_host(model, "d0", region);
    add_link(model, 1, 3, 10 * mega, 100ms);
    add_link(model, 2, 3, 10 * mega, 99ms);
    const auto feeder = [&] {
      const Plan plan = plan_of(model);
      return plan.node(*plan.find("d0")->parent).region;
    };
    CHECK(feeder() == "c");
    model.links[4].rtt = 100ms;
    CHECK(feeder() == "b");
    model.links[3].cost = 1;
    CHECK(feeder() == "c");
  }

  TEST_CASE("a region entered over a link without transit feeds no other region") {
    Model model = three_regions(1);
    model.links[0].transit = false;
    const Plan plan = plan_of(model);
    CHECK(plan.node(*plan.find("c0")->parent).region == "a");
    CHECK(plan.find("c0")->inbound <= Rate{20 * mega});
    model.links.erase(model.links.begin() + 1);
    const PlanResult none = make_plan(model);
    REQUIRE(none.problems.size() == 1);
    CHECK(none.problems[0].subject == PlanProblem::Subject::region);
    CHECK(none.problems[0].index == 2);
    CHECK(none.problems[0].message == "no path of links leads from the root's region to region \"c\"");
  }

  TEST_CASE("a link listed one way holds both ways, and the other way when that is listed") {
    Model model;
    model.mesh = std::string("m");
    const auto a = add_region(model, "a", 100 * mega), b = add_region(model, "b", 100 * mega);
    model.root = add_host(model, "r", b);
    add_host(model, "h", a);
    add_link(model, 0, 1, 7 * mega);
    CHECK(plan_of(model).find("h")->inbound == Rate{7 * mega});
    add_link(model, 1, 0, 3 * mega);
    CHECK(plan_of(model).find("h")->inbound == Rate{3 * mega});
  }

  TEST_CASE("the head of a region is the host that takes in and passes on most") {
    Model model = three_regions(3);
    const auto named = [&](const char* name) -> Host& {
      return *std::find_if(model.hosts.begin(), model.hosts.end(), [&](const Host& h) { return h.name == name; });
    };
    named("b2").uplink = Rate{101 * mega};
    CHECK(plan_of(model).find("b2")->region_head);
    named("b2").downlink = Rate{49 * mega};  // less than the link brings
    CHECK(plan_of(model).find("b0")->region_head);
    named("b0").max_children = 0;
    CHECK(plan_of(model).find("b1")->region_head);
  }

  TEST_CASE("fan-out grows when depth costs more than rate, and shrinks to a chain when rate is all") {
    Model small = one_region(12, 12);
    small.refit = {2 * mega, 1};
    small.regions[0].rtt = 500ms;
    CHECK(plan_of(small).root().children.size() == 12);
    Model large = one_region(12, 12);
    large.refit = {1'000'000 * mega, 1};
    const Plan chain = plan_of(large);
    for (const PlanNode& node : chain.nodes()) CHECK(node.children.size() <= 1);
    CHECK(chain.node(chain.by_rank().back()).depth == 12);
  }

  TEST_CASE("hosts that may have no children are leaves; too few others is a problem that says what to raise") {
    Model model = one_region(5, 16);
    for (const std::size_t leaf : {1u, 2u, 3u}) model.hosts[leaf].max_children = 0;
    const Plan plan = plan_of(model);
    check_plan(model, plan);
    model.hosts[0].max_children = 1;
    model.hosts[4].max_children = model.hosts[5].max_children = 1;
    const PlanResult none = make_plan(model);
    REQUIRE(none.problems.size() == 1);
    CHECK(none.problems[0].message ==
          "the hosts of region \"a\" may have 3 children together, and 5 have to be fed from head \"r\"; raise "
          "max_children");
  }

  TEST_CASE("uplinks too narrow to share are told apart from too few children") {
    Model model = three_regions(0);
    model.links.pop_back();
    model.hosts[0].uplink = Rate{1};
    const PlanResult none = make_plan(model);
    REQUIRE(none.problems.size() == 1);
    CHECK(none.problems[0].message ==
          "the uplinks of region \"a\" are too narrow to feed 2 hosts from head \"r\" at any rate; raise them");
  }

  TEST_CASE("a region behind one that cannot be laid out is not another problem") {
    Model model = three_regions(3);
    for (Host& host : model.hosts) {
      if (host.region == RegionIndex{0}) host.max_children = host.name == "r" ? 1 : 0;
    }
    const PlanResult none = make_plan(model);
    REQUIRE(none.problems.size() == 1);
    CHECK(none.problems[0].index == 0);
  }

  TEST_CASE("regions without hosts and without links are all named") {
    Model model = one_region(1, 16);
    add_region(model, "empty", mega);
    add_host(model, "x", add_region(model, "apart", mega));
    const PlanResult none = make_plan(model);
    REQUIRE(none.problems.size() == 2);
    CHECK(none.problems[0].message == "region \"empty\" has no hosts");
    CHECK(none.problems[1].message == "no path of links leads from the root's region to region \"apart\"");
  }

  TEST_CASE("candidates lead from the parent up, over peers, to the root") {
    Model model = one_region(6, 2);
    model.refit = {2 * mega, 1};
    model.regions[0].rtt = 500ms;
    const Plan plan = plan_of(model);
    // r feeds h1 and h2, h1 feeds h3 and h4, h2 feeds h5 and h6.
    REQUIRE(parent_of(plan, "h5") == "h2");
    CHECK(candidates_of(plan, "h1") == "r");
    CHECK(candidates_of(plan, "h2") == "r h1");
    CHECK(candidates_of(plan, "h3") == "h1 h2 r");
    CHECK(candidates_of(plan, "h5") == "h2 h1 r");
    const auto list = plan.candidates("h5");
    CHECK(list[0] == Candidate{"h2", {"h2", 7443}, 2});
    CHECK(list[2] == Candidate{"r", {"r", 7443}, 0});
    model.limits.max_candidates = 2;
    CHECK(candidates_of(plan_of(model), "h5") == "h2 r");
  }

  TEST_CASE("the children of a region's head try the region's standby before they leave the region") {
    Model model = three_regions(4);
    model.refit = {2 * mega, 1};
    for (Region& region : model.regions) region.rtt = 500ms;
    const Plan plan = plan_of(model);
    REQUIRE(plan.find("b0")->region_head);
    std::size_t children = 0;
    for (const HostIndex child : plan.find("b0")->children) {
      const PlanNode& node = plan.node(child);
      if (node.region != "b") continue;
      if (children++ == 0) continue;  // this one is the standby
      REQUIRE(node.candidates.size() >= 2);
      CHECK(plan.node(node.candidates[1]).region == "b");
      CHECK(plan.node(node.candidates[1]).rank > plan.find("b0")->rank);
    }
    CHECK(children >= 2);
  }

  TEST_CASE("the children of a dead node spread over its peers") {
    Model model = one_region(72, 8);
    model.refit = {2 * mega, 1};
    model.regions[0].rtt = 500ms;
    const Plan plan = plan_of(model);
    const PlanNode* dead = plan.find("h1");
    REQUIRE(dead->children.size() == 8);
    std::vector<HostIndex> next;
    for (const HostIndex child : dead->children) {
      const auto& candidates = plan.node(child).candidates;
      REQUIRE(candidates.size() > 2);
      next.push_back(candidates[1]);
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    CHECK(next.size() >= 3);
  }

  TEST_CASE("five thousand hosts in twenty regions make a correct plan") {
    Model model;
    model.mesh = "large";
    for (std::size_t r = 0; r < 20; ++r) {
      const auto region = add_region(model, numbered("r", r), 3000 * mega, 200us);
      for (std::size_t h = 0; h < 250; ++h) {
        add_host(model, numbered(numbered("h", r).append("-"), h), region, 8);
        model.hosts.back().uplink.bytes_per_second -= 1000 * ((h * 7919) % 1000);
      }
      if (r > 0) add_link(model, (r - 1) / 2, r, 400 * mega - r * mega, 80ms);
    }
    check_plan(model, plan_of(model));

    Model flat;
    flat.mesh = "flat";
    const auto region = add_region(flat, "one", 3000 * mega, 200us);
    for (std::size_t h = 0; h < 5000; ++h) {
      add_host(flat, numbered("h", h), region, 16);
      flat.hosts.back().uplink.bytes_per_second -= 1000 * ((h * 7919) % 5000);  // all different
    }
    check_plan(flat, plan_of(flat));
  }
}
