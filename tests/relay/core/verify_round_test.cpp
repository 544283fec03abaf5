// One round of verifying on one node: when the image is read, who is waited for, and what ends it.
#include "relay/core/verify_round.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "relay/core/node.hpp"

using namespace deltarelay::relay;
using namespace std::chrono_literals;

namespace {

NodeRecord record_of(const std::string& name, const std::string& parent, bool reachable = true) {
  NodeRecord record;
  record.name = name;
  record.parent = parent;
  record.reachable = reachable;
  record.attach_sequence = 1;
  return record;
}

/// root <- mid <- leaf, all reachable.
struct Scene {
  Reports reports{100};
  VerifyRound round{"root", 3};
  Instant now{1000h};
  Actions out;

  Scene() {
    (void)reports.set_self(record_of("root", ""));
    (void)reports.merge({record_of("mid", "root"), record_of("leaf", "mid")});
  }
  void begin(bool deep = true) { round.begin(VerifyOrder{7, deep}, reports, now, out); }
  void step(const std::string& in_the_way = "") { round.step({in_the_way}, Version{4}, now, out); }
  void own_is(VerifyState state, std::uint64_t attempt = 1) {
    VerifyResult result;
    result.state = state;
    round.on(ImageVerified{attempt, result}, now);
  }
  void says(const std::string& node, VerifyState state, std::uint64_t serial = 1, std::uint64_t of_round = 7) {
    VerifyResult result;
    result.node = node;
    result.serial = serial;
    result.state = state;
    round.merge(VerifyResults{of_round, {result}}, reports, now);
  }
  [[nodiscard]] VerifyState state_of(const std::string& node) const { return round.rows().at(node).result.state; }
  template <class T>
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::count_if(out.begin(), out.end(), [](const Action& a) { return std::holds_alternative<T>(a); }));
  }
};

}  // namespace

TEST_SUITE("relay/core/verify_round") {
  TEST_CASE("a round is over when every node that could be reached has said its last word") {
    Scene scene;
    CHECK(scene.round.over(scene.reports, scene.now));  // none has begun
    scene.begin();
    scene.step();
    REQUIRE(scene.count<VerifyImage>() == 1);
    CHECK(std::get<VerifyImage>(scene.out.back()).deep);
    scene.own_is(VerifyState::ok);
    scene.says("mid", VerifyState::damaged);
    CHECK_FALSE(scene.round.over(scene.reports, scene.now));
    scene.says("leaf", VerifyState::reading);
    CHECK_FALSE(scene.round.over(scene.reports, scene.now));
    scene.says("leaf", VerifyState::ok, 2);
    CHECK(scene.round.over(scene.reports, scene.now));
    CHECK(scene.state_of("mid") == VerifyState::damaged);
    CHECK((scene.round.rows().at("root").result.serial / first_of_boot(1)) == 3);  // the boot count: a restart's news are newer
  }

  TEST_CASE("an image that is written is waited for, with signs of life, and in the end is BUSY") {
    Scene scene;
    scene.begin();
    (void)scene.round.take(100);
    scene.step("RECEIVING v5");
    CHECK(scene.count<VerifyImage>() == 0);
    REQUIRE(scene.round.take(100).size() == 1);
    scene.now += 1s;
    scene.step("RECEIVING v5");
    CHECK_FALSE(scene.round.pending());
    scene.now += 2s;
    scene.step("RECEIVING v5");
    CHECK(scene.round.pending());
    scene.now += VerifyRound::patience;
    scene.step("RECEIVING v5");
    CHECK(scene.state_of("root") == VerifyState::busy);
    CHECK(scene.round.rows().at("root").result.text == "RECEIVING v5");
    scene.step();
    CHECK(scene.count<VerifyImage>() == 0);  // a last word is the last
  }

  TEST_CASE("an image that cannot be opened has its patience too, for it may be opened anew, and is then FAILED") {
    Scene scene;
    scene.begin();
    const VerifyObstacle broken{"FAILED: HARD_LINKED: model.safetensors", true};
    scene.round.step(broken, Version{}, scene.now, scene.out);
    CHECK(scene.state_of("root") == VerifyState::waiting);
    scene.now += VerifyRound::patience;
    scene.round.step(broken, Version{}, scene.now, scene.out);
    CHECK(scene.state_of("root") == VerifyState::failed);
    CHECK(scene.round.rows().at("root").result.text == broken.text);
  }

  TEST_CASE("a node says of an image that it cannot open that it is broken, and why") {
    NodeConfig config;
    config.name = "root";
    config.is_root = true;
    Node node(config);
    Instant now{1000h};
    (void)node.handle(ImageFailed{"HARD_LINKED", "a is also b", false}, now);
    (void)node.handle(VerifyRequested{1, false}, now);
    Actions last;
    for (int i = 0; i < 40 && !node.verify().closed(); ++i) last = node.handle(Tick{}, now += 1s);
    REQUIRE(node.verify().closed().has_value());
    const VerifyResult& own = node.verify().rows().at("root").result;
    CHECK(own.state == VerifyState::failed);
    CHECK(own.text.find("HARD_LINKED: a is also b") != std::string::npos);
    CHECK(std::any_of(last.begin(), last.end(), [](const Action& a) {
      const auto* answer = std::get_if<Answer>(&a);
      return answer != nullptr && answer->request == 1 && answer->code.empty();
    }));
  }

  TEST_CASE("a write that begins under a reading makes its answer void, and the image is read anew afterwards") {
    Scene scene;
    scene.begin();
    scene.step();
    scene.step("RECEIVING v5");
    CHECK(scene.count<StopVerify>() == 1);
    scene.own_is(VerifyState::damaged, 1);
    CHECK(scene.state_of("root") == VerifyState::waiting);
    scene.now += VerifyRound::patience - 1s;
    scene.step();
    CHECK(scene.count<VerifyImage>() == 2);
    scene.own_is(VerifyState::damaged, 1);  // of the first attempt, late
    scene.round.on(VerifyProgress{1, 5, 9}, scene.now);
    CHECK(scene.round.rows().at("root").result.checked_bytes == 0);
    CHECK(scene.state_of("root") == VerifyState::reading);
    scene.own_is(VerifyState::ok, 2);
    CHECK(scene.state_of("root") == VerifyState::ok);
  }

  TEST_CASE("refits that never leave the time to read an image do not keep a round open for ever") {
    Scene scene;
    scene.begin();
    for (std::uint64_t i = 0; i < VerifyRound::attempts_max; ++i) {
      CHECK(scene.round.working());
      scene.step();
      scene.step("RECEIVING v5");
    }
    CHECK(scene.state_of("root") == VerifyState::busy);
    CHECK(scene.count<VerifyImage>() == VerifyRound::attempts_max);
  }

  TEST_CASE("whoever is lost before the round begins is not waited for, with all that hang below it") {
    Scene scene;
    scene.reports.lost("mid", "reset");
    scene.begin();
    scene.step();
    scene.own_is(VerifyState::ok);
    CHECK(scene.round.over(scene.reports, scene.now));
    CHECK(scene.round.rows().count("leaf") == 0);
  }

  TEST_CASE("whoever is lost in the middle has a grace to come back, and silence of a connected node ends too") {
    Scene scene;
    scene.begin();
    scene.step();
    scene.own_is(VerifyState::ok);
    scene.says("leaf", VerifyState::ok);
    scene.says("mid", VerifyState::reading);
    scene.reports.lost("mid", "reset");
    scene.now += VerifyRound::lost_grace;
    CHECK_FALSE(scene.round.over(scene.reports, scene.now));
    scene.now += 1ms;
    CHECK(scene.round.over(scene.reports, scene.now));

    Scene silent;
    silent.begin();
    silent.step();
    silent.own_is(VerifyState::ok);
    silent.says("mid", VerifyState::ok);
    silent.now += VerifyRound::silence_max;
    CHECK_FALSE(silent.round.over(silent.reports, silent.now));
    silent.now += 1ms;
    CHECK(silent.round.over(silent.reports, silent.now));
  }

  TEST_CASE("news of another round, older news, and news of nodes that nobody knows are dropped") {
    Scene scene;
    scene.begin();
    scene.says("leaf", VerifyState::damaged, 5);
    scene.says("leaf", VerifyState::ok, 4);
    scene.says("leaf", VerifyState::ok, 5);
    scene.says("leaf", VerifyState::ok, 6, 8);
    CHECK(scene.state_of("leaf") == VerifyState::damaged);
    scene.says("root", VerifyState::ok, UINT64_MAX);  // nobody below speaks for this node
    CHECK(scene.state_of("root") == VerifyState::waiting);
    scene.says("stranger", VerifyState::ok);
    CHECK(scene.round.rows().count("stranger") == 0);
    scene.round.close(scene.now);
    scene.says("leaf", VerifyState::ok, 7);
    CHECK(scene.state_of("leaf") == VerifyState::damaged);
  }

  TEST_CASE("a new parent is told everything that is known, and no row that nobody filled") {
    Scene scene;
    scene.begin();
    scene.says("leaf", VerifyState::ok);
    CHECK(scene.round.take(1).size() == 1);
    CHECK(scene.round.take(100).size() == 1);
    CHECK_FALSE(scene.round.pending());
    scene.round.mark_all();
    const std::vector<VerifyResult> told = scene.round.take(100);
    REQUIRE(told.size() == 2);
    CHECK(told[0].node == "leaf");
    CHECK(told[1].node == "root");
  }

  TEST_CASE("a new round replaces the one before, and stops its reading") {
    Scene scene;
    scene.begin();
    scene.step();
    scene.round.begin(VerifyOrder{8, false}, scene.reports, scene.now, scene.out);
    CHECK(scene.count<StopVerify>() == 1);
    scene.own_is(VerifyState::ok, 1);
    CHECK(scene.state_of("root") == VerifyState::waiting);
    scene.step();
    CHECK_FALSE(std::get<VerifyImage>(scene.out.back()).deep);
    CHECK(std::get<VerifyImage>(scene.out.back()).attempt == 2);
  }

  TEST_CASE(
      "a node refuses a second question while the first is open, and answers the first when a round from above "
      "replaces it") {
    NodeConfig config;
    config.name = "leaf";
    config.rank = 2;
    config.boot_id = 40;
    config.candidates = {{"mid", "10.0.0.1:7443"}};
    Node node(config);
    Instant now{1000h};
    const auto answer_in = [](const Actions& actions) {
      const Answer* found = nullptr;
      for (const Action& action : actions)
        if (const auto* answer = std::get_if<Answer>(&action)) found = answer;
      return found == nullptr ? Answer{} : *found;
    };
    ImageState image;
    image.version = Version{4};
    (void)node.handle(ImageOpened{image}, now);
    (void)node.handle(Tick{}, now += 1s);
    (void)node.handle(LinkUp{LinkId{1}, "mid", true}, now);
    CHECK(answer_in(node.handle(MessageArrived{LinkId{1}, VerifyOrder{9, true}}, now)).request == 0);
    CHECK_FALSE(node.verify().begun());  // nobody orders before it has welcomed
    Welcome welcome;
    welcome.rank = 1;
    (void)node.handle(MessageArrived{LinkId{1}, welcome}, now);
    (void)node.handle(VerifyRequested{1, true}, now);
    CHECK(node.verify().begun());
    CHECK(answer_in(node.handle(VerifyRequested{2, true}, now)).code == "VERIFY_RUNS");
    const Actions replaced = node.handle(MessageArrived{LinkId{1}, VerifyOrder{9, true}}, now);
    CHECK(answer_in(replaced).request == 1);
    CHECK(answer_in(replaced).code == "VERIFY_REPLACED");
    CHECK(node.verify().order().round == 9);
  }
}
