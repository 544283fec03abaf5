// Links between two ends of ours, over TLS on 127.0.0.1. Hostile ends: link_peer_test.cpp.
#include <doctest/doctest.h>

#include "tests/relay/net/net_world.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::net;
using namespace deltarelay::tests;

namespace {

/// Two nodes of one mesh with a link between them.
struct Pair {
  explicit Pair(LinkConfig child_config = {}, LinkConfig parent_config = {},
                std::size_t budget_bytes = 256 * codec::mib, bool child_keeps_holds = false)
      : world(budget_bytes), child(child_keeps_holds) {
    auto of_parent = world.environment(mesh);
    of_parent.budget = &parent_budget;
    of_parent.config = parent_config;
    Door door(of_parent, mesh.tls("parent", Role::root));
    auto of_child = world.environment(mesh);
    of_child.config = child_config;
    ConnectTarget target;
    target.node = "parent";
    target.address = door.address();
    auto result = world.connect(of_child, mesh.tls("child"), target);
    REQUIRE_MESSAGE(result.link != nullptr, result.detail);
    dialled = result.link;
    accepted = door.wait_for_link();
    door.listener->stop();
  }
  void start() {
    child.start(dialled);
    parent.start(accepted);
  }

  /// Handlers refer to the endpoints until the world's threads have ended; what the endpoints hold is of the budgets.
  ~Pair() { world.stop(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  TestMesh mesh;
  ByteBudget parent_budget{256 * codec::mib};
  NetWorld world;
  Endpoint child, parent;
  std::shared_ptr<Link> dialled, accepted;
};

}  // namespace

TEST_SUITE("relay/net/link") {
  TEST_CASE("records arrive both ways, byte for byte and in order") {
    Pair pair;
    CHECK(pair.dialled->peer() == PeerIdentity{"m1", Role::root, "parent"});
    CHECK(pair.accepted->peer() == PeerIdentity{"m1", Role::relay, "child"});
    CHECK(pair.dialled->remote_address().rfind("127.0.0.1:", 0) == 0);
    pair.start();

    std::vector<codec::RecordPtr> down, up;
    for (std::uint64_t i = 0; i < 50; ++i) {
      down.push_back(pair.mesh.frame(i, i * 1000));
      up.push_back(pair.mesh.message(i, i));
      pair.accepted->send(down.back(), Lane::data);
      pair.dialled->send(up.back(), Lane::control);
    }
    REQUIRE(pair.child.wait_for_records(50));
    REQUIRE(pair.parent.wait_for_records(50));
    pair.child.seen.change([&](Seen& seen) {
      for (std::size_t i = 0; i < 50; ++i) CHECK(seen.records.at(i)->bytes == down.at(i)->bytes);
    });
    pair.parent.seen.change([&](Seen& seen) {
      for (std::size_t i = 0; i < 50; ++i) CHECK(seen.records.at(i)->header == up.at(i)->header);
    });
  }
}
