// The cost model against values computed by hand from its formulas.
#include "topology/cost.hpp"

#include <doctest/doctest.h>

#include <array>

#include "tests/topology/sample_models.hpp"

using namespace deltarelay::topology;
using namespace deltarelay::tests;
using namespace std::chrono_literals;

namespace {

struct Planned {
  Model model;
  Plan plan;
  Prediction prediction;
  [[nodiscard]] const NodeTime& of(const char* name) const {
    return prediction.nodes.at(plan.find(name)->rank == 0 ? raw(plan.root_index()) : index_of(name));
  }
  [[nodiscard]] std::size_t index_of(std::string_view name) const {
    std::size_t at = 0;
    while (model.hosts.at(at).name != name) ++at;
    return at;
  }
};

Planned planned(const Model& model) {
  PlanResult result = make_plan(model);
  REQUIRE(result.plan.has_value());
  Prediction prediction = predict(model, *result.plan, model.refit);
  return {model, std::move(*result.plan), std::move(prediction)};
}

doctest::Approx about(double value) {
  return doctest::Approx(value).epsilon(1e-9);
}

constexpr double frame = 1024 * 1024;  // s, bytes
constexpr double handling = 0.0015;    // of a hop, seconds

}  // namespace

TEST_SUITE("topology/cost") {
  TEST_CASE("a hop is one frame, its handling and half a round trip") {
    CHECK(frame_bytes == 1024 * 1024);
    CHECK(hop_handling == 1500us);
    CHECK(seconds(1500us) == about(0.0015));
    CHECK(seconds_at(500, Rate{1000}) == about(0.5));
    CHECK(hop_seconds(Rate{1'000'000}, 100ms) == about(1.048576 + 0.0015 + 0.05));
    CHECK(rest_seconds(11 * 1024 * 1024, Rate{1'048'576}) == about(10));
    CHECK(rest_seconds(5, Rate{1}) == 0);
  }

  TEST_CASE("the payload follows the measured points, by straight lines, and is never more than all") {
    struct Point {
      double change, share;
    };
    constexpr std::array points{Point{0, 0},         Point{0.01, 0.0047}, Point{0.02, 0.00845}, Point{0.03, 0.0122},
                                Point{0.04, 0.0157}, Point{0.05, 0.0192}, Point{0.525, 0.5096}, Point{1, 1}};
    for (const Point& point : points) {
      CAPTURE(point.change);
      CHECK(payload_share(point.change) == about(point.share));
    }
    CHECK(payload_bytes({2'000'000'000'000, 0.03}) == 24'400'000'000);
    CHECK(payload_bytes({1000, 1}) == 1000);
    double last = 0;
    for (int i = 1; i <= 1000; ++i) {
      const double share = payload_share(i / 1000.0);
      CHECK(share > last);
      CHECK(share <= 1);
      last = share;
    }
  }

  TEST_CASE("a chain of N hops takes F/B + (N-1) s/B + N L") {
    // Four hosts, 100 MB/s, 10 GB, L = 1.5 ms + 1 ms.
    const Planned chain = planned(one_region(4, 1));
    REQUIRE(chain.plan.find("h4")->depth == 4);
    const double b = 100e6, f = 10e9, l = handling + 0.001;
    CHECK(chain.of("h1").done_seconds == about(f / b + l));
    CHECK(chain.of("h4").done_seconds == about(f / b + 3 * frame / b + 4 * l));
    CHECK(chain.of("h4").done_seconds == about(100 + 0.03145728 + 0.01));
    CHECK(chain.of("h4").arrival_seconds == about(4 * (0.01048576 + l)));
    CHECK(chain.of("h4").rate == Rate{100 * mega});
    // Votes and the decision: 4 hops of 1 ms, there and back, and twice 10 ms to make things durable.
    CHECK(chain.prediction.commit_seconds == about(2 * 0.004 + 0.02));
    CHECK(chain.prediction.total_seconds == about(100.04145728 + 0.028));
    CHECK(chain.prediction.bound_seconds == about(100));
    CHECK(chain.prediction.efficiency == about(100 / 100.06945728));
    CHECK(chain.prediction.dense_seconds == about(chain.prediction.total_seconds));
  }

  TEST_CASE("a d-ary tree of H hops takes d F/B + (H-1) d s/B + H L") {
    // Six hosts below the root, two children each: d = 2, H = 2. Half a second of round trip makes it the better shape.
    Model model = one_region(6, 2);
    model.regions[0].rtt = 500ms;
    model.refit = {20 * mega, 1};
    const Planned tree = planned(model);
    REQUIRE(tree.plan.find("h6")->depth == 2);
    REQUIRE(tree.plan.root().children.size() == 2);
    const double b = 100e6, f = 20e6, l = handling + 0.25;
    CHECK(tree.of("h1").done_seconds == about(2 * f / b + l));
    CHECK(tree.of("h6").done_seconds == about(2 * f / b + 2 * frame / b + 2 * l));
    CHECK(tree.of("h6").done_seconds == about(0.4 + 0.02097152 + 0.503));
    CHECK(tree.of("h6").rate == Rate{50 * mega});
    CHECK(tree.of("h6").bound == Bound::uplink);
    CHECK(tree.prediction.regions[0].limited_by == "uplink of r (2 children)");
    CHECK(tree.prediction.regions[0].depth == 2);
    CHECK(tree.prediction.bound_seconds == about(f / b));
  }

  TEST_CASE("behind a narrow link a host is done when the rest has come at the link's rate") {
    Model model = one_region(1, 16);
    const RegionIndex far = add_region(model, "b", 100 * mega);
    add_host(model, "b0", far);
    add_host(model, "b1", far);
    add_link(model, 0, 1, 10 * mega, 90ms);
    model.refit = {1000 * mega, 1};
    const Planned two = planned(model);
    const double link = 10e6;
    const double head_arrival = frame / link + handling + 0.045;
    CHECK(two.of("b0").arrival_seconds == about(head_arrival));
    CHECK(two.of("b0").done_seconds == about(head_arrival + (1000e6 - frame) / link));
    CHECK(two.of("b0").bound == Bound::link);
    const RegionTime& region = two.prediction.regions[1];
    CHECK(region.name == "b");
    CHECK(region.hosts == 2);
    CHECK(region.head == "b0");
    CHECK(region.entered_from == "r");
    CHECK(region.depth == 1);
    CHECK(region.rate == Rate{10 * mega});
    CHECK(region.bound == Bound::link);
    CHECK(region.limited_by == "link a to b");
    CHECK(region.bound_seconds == about(100));
    CHECK(two.prediction.regions[0].entered_from.empty());
    CHECK(two.prediction.total_seconds == about(region.done_seconds + two.prediction.commit_seconds));
  }

  TEST_CASE("encoding and writing the image are passes over the whole checkpoint, beside the transfer") {
    Model model = one_region(1, 16);
    model.refit = {10'000 * mega, 0.03};  // 122 MB: 1.22 s at 100 MB/s
    model.rates = {Rate{1'000 * mega}, Rate{500 * mega}};
    const double arrival = frame / 100e6 + handling + 0.001;
    const Planned slow_disk = planned(model);
    CHECK(slow_disk.of("r").done_seconds == about(10));
    CHECK(slow_disk.of("r").bound == Bound::encode);
    CHECK(slow_disk.of("h1").done_seconds == about(arrival + 20));
    CHECK(slow_disk.of("h1").bound == Bound::apply);
    CHECK(slow_disk.prediction.regions[0].limited_by == "writing the image");
    CHECK(slow_disk.prediction.bound_seconds == about(20));
    model.rates.apply = Rate{2'000 * mega};
    const Planned slow_root = planned(model);
    CHECK(slow_root.of("h1").done_seconds == about(arrival + 10));
    CHECK(slow_root.of("h1").bound == Bound::encode);
    CHECK(slow_root.prediction.regions[0].limited_by == "encoding at the root");
  }

  TEST_CASE("the narrow downlink of one host is named and slows that host alone") {
    Model model = one_region(3, 16);
    model.hosts[2].downlink = Rate{5 * mega};
    model.refit = {1000 * mega, 1};
    const Planned plan = planned(model);
    CHECK(plan.of("h2").bound == Bound::downlink);
    CHECK(plan.of("h2").rate == Rate{5 * mega});
    CHECK(plan.of("h2").done_seconds > 199);
    CHECK(plan.of("h1").done_seconds < 40);
    CHECK(plan.prediction.regions[0].limited_by == "downlink of h2");
    CHECK(plan.plan.find("h2")->children.empty());
  }

  TEST_CASE("an inherited narrow edge is named where it is") {
    Model model = one_region(3, 1);
    model.hosts[0].uplink = Rate{7 * mega};
    model.refit = {1000 * mega, 1};
    const Planned plan = planned(model);
    CHECK(plan.plan.find("h3")->depth == 3);
    CHECK(plan.of("h3").rate == Rate{7 * mega});
    CHECK(plan.of("h3").bound == Bound::uplink);
    CHECK(plan.prediction.regions[0].limited_by == "uplink of r");
  }

  TEST_CASE("a fleet of one root has nothing to wait for but its own pass") {
    Model model = one_region(0, 16);
    model.rates.encode = Rate{1'000 * mega};
    const Planned plan = planned(model);
    CHECK(plan.prediction.total_seconds == about(10 + 0.02));
    CHECK(plan.prediction.regions[0].limited_by == "encoding at the root");
    CHECK(plan.prediction.regions[0].rate == Rate{0});
  }

  TEST_CASE("the dense checkpoint over the reference link takes 87.5 minutes, a refit of 3 % about 80 times less") {
    Model model;
    model.mesh = std::string("reference");
    const auto train = add_region(model, "train", 3125 * mega, 200us);
    const auto rollout = add_region(model, "rollout", 3125 * mega, 200us);
    model.root = add_host(model, "trn", train);
    add_host(model, "r0", rollout);
    add_link(model, 0, 1, 381 * mega, 60ms);
    model.refit = {2'000'000 * mega, 0.03};
    model.rates = {Rate{100'000 * mega}, Rate{100'000 * mega}};
    const Planned plan = planned(model);
    CHECK(plan.prediction.dense_seconds / 60 == doctest::Approx(87.5).epsilon(0.001));
    CHECK(plan.prediction.bound_seconds == about(24.4e9 / 381e6));
    CHECK(plan.prediction.dense_seconds / plan.prediction.total_seconds == doctest::Approx(1 / 0.0122).epsilon(0.01));
  }

  TEST_CASE("every bound has its own name") {
    CHECK(std::string(name_of(Bound::none)) == "none");
    CHECK(std::string(name_of(Bound::link)) == "link");
    CHECK(std::string(name_of(Bound::uplink)) == "uplink");
    CHECK(std::string(name_of(Bound::downlink)) == "downlink");
    CHECK(std::string(name_of(Bound::encode)) == "encode");
    CHECK(std::string(name_of(Bound::apply)) == "apply");
  }
}
