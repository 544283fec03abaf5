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
    of_parent.tasks = &parent_tasks;
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
  ~Pair() { stop(); }
  void stop() {
    parent_tasks.stop();
    world.stop();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  TestMesh mesh;
  ByteBudget parent_budget{256 * codec::mib};
  TaskGroup parent_tasks;
  NetWorld world;
  Endpoint child, parent;
  std::shared_ptr<Link> dialled, accepted;
};

/// The same record with one byte of the wire changed.
codec::RecordPtr damaged(const codec::RecordPtr& record, std::size_t at) {
  auto out = std::make_shared<codec::Record>(*record);
  out->bytes.at(at) ^= std::byte{1};
  return out;
}

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

  TEST_CASE("control goes before data that was queued earlier, and each lane keeps its order") {
    Pair pair;
    // Before the start nothing is written, so the order is the queue's alone.
    for (std::uint64_t i = 0; i < 3; ++i) pair.accepted->send(pair.mesh.frame(i, codec::mib), Lane::data);
    for (std::uint64_t i = 10; i < 12; ++i) pair.accepted->send(pair.mesh.message(i), Lane::control);
    pair.start();
    REQUIRE(pair.child.wait_for_records(5));
    std::vector<std::uint64_t> order;
    pair.child.seen.change([&](Seen& seen) {
      for (const auto& record : seen.records) order.push_back(codec::raw(record->header.sequence));
    });
    CHECK(order == std::vector<std::uint64_t>{10, 11, 0, 1, 2});
  }

  TEST_CASE("a payload of tens of MiB arrives whole, and what was sent and received is counted") {
    Pair pair;
    pair.start();
    std::vector<std::byte> content(codec::file_payload_bytes_max);
    for (std::size_t i = 0; i < content.size(); i += 997) content[i] = static_cast<std::byte>(i / 997);
    codec::RecordHeader header;
    header.type = codec::RecordType::file;
    header.mesh = pair.mesh.id();
    const auto key = pair.mesh.signer();
    const auto big = codec::seal_record(header, content, &key);
    pair.accepted->send(big, Lane::data);
    REQUIRE(pair.child.wait_for_records(1));
    pair.child.seen.change([&](Seen& seen) { CHECK(seen.records.front()->bytes == big->bytes); });
    REQUIRE(pair.parent.seen.wait_for([&](const Seen& seen) { return seen.sent_bytes[1] == big->bytes.size(); }));
    CHECK(pair.accepted->counts().sent_bytes > big->bytes.size());
    CHECK(pair.dialled->counts().received_bytes > big->bytes.size());
    CHECK(pair.dialled->counts().received_records == 1);
  }

  TEST_CASE("keys are renewed on the way without a trace in the records") {
    LinkConfig config;
    config.rekey_after_bytes = 100'000;
    Pair pair(config, config);
    pair.start();
    std::vector<codec::RecordPtr> sent;
    for (std::uint64_t i = 0; i < 40; ++i) {
      sent.push_back(pair.mesh.frame(i, 50'000));
      pair.accepted->send(sent.back(), Lane::data);
      pair.dialled->send(sent.back(), Lane::data);
    }
    for (Endpoint* end : {&pair.child, &pair.parent}) {
      REQUIRE(end->wait_for_records(40));
      end->seen.change([&](Seen& seen) {
        for (std::size_t i = 0; i < 40; ++i) CHECK(seen.records.at(i)->bytes == sent.at(i)->bytes);
      });
    }
  }

  TEST_CASE("a log record that does not hold is rejected with its reason, and the link lives on") {
    Pair pair;
    const TestMesh other("m2");
    const auto good = pair.mesh.frame(1, 5000);
    struct {
      codec::RecordPtr record;
      codec::errc why;
    } const bad[] = {
        {damaged(good, codec::record_header_bytes + 4999), codec::errc::payload_digest_mismatch},
        {damaged(good, codec::record_signed_bytes), codec::errc::signature_invalid},
        {damaged(good, 48), codec::errc::signature_invalid},  // the sequence
        {other.frame(2, 300), codec::errc::mesh_mismatch},
    };
    for (const auto& entry : bad) pair.accepted->send(entry.record, Lane::data);
    pair.accepted->send(pair.mesh.frame(3, 100), Lane::data);
    pair.start();
    REQUIRE(pair.child.wait_for_records(1));
    pair.child.seen.change([&](Seen& seen) {
      CHECK(codec::raw(seen.records.front()->header.sequence) == 3);
      REQUIRE(seen.rejected.size() == std::size(bad));
      for (std::size_t i = 0; i < std::size(bad); ++i) CHECK(seen.rejected.at(i).second == bad[i].why);
      CHECK(seen.ends.empty());
    });
    CHECK(pair.dialled->counts().rejected_records == std::size(bad));
    pair.stop();  // the last handler has returned what it was given
    CHECK(pair.world.budget.used_bytes() == 0);
  }

  TEST_CASE("a signed record of a type from a later release is skipped") {
    Pair pair;
    codec::RecordHeader header;
    header.type = static_cast<codec::RecordType>(77);
    header.mesh = pair.mesh.id();
    const auto key = pair.mesh.signer();
    const std::vector<std::byte> payload(40'000);
    pair.accepted->send(codec::seal_record(header, payload, &key), Lane::data);
    pair.accepted->send(pair.mesh.frame(1, 10), Lane::data);
    pair.start();
    REQUIRE(pair.child.wait_for_records(1));
    CHECK(pair.child.seen.look([](const Seen& seen) { return seen.records.front()->header.type; }) ==
          codec::RecordType::frame);
    CHECK(pair.child.seen.look([](const Seen& seen) { return seen.rejected.size(); }) == 0);
  }

  TEST_CASE("a link message of another mesh ends the link") {
    Pair pair;
    pair.start();
    const TestMesh other("m2");
    pair.accepted->send(other.message(1, 20), Lane::control);
    const LinkEnd end = pair.child.wait_for_end();
    CHECK(code(end.why) == "bad_record");
    CHECK(end.detail == codec::make_error_code(codec::errc::mesh_mismatch).message());
    CHECK(code(pair.parent.wait_for_end().why) == "closed_by_peer");
  }

  TEST_CASE("bytes that are no record end the link after the records before them") {
    Pair pair;
    auto garbage = std::make_shared<codec::Record>();
    garbage->bytes.assign(codec::record_header_bytes, std::byte{'x'});
    pair.accepted->send(pair.mesh.frame(1, codec::mib), Lane::data);
    pair.accepted->send(garbage, Lane::data);
    pair.start();
    const LinkEnd end = pair.child.wait_for_end();
    CHECK(code(end.why) == "bad_record");
    CHECK(end.detail == codec::make_error_code(codec::errc::bad_magic).message());
    pair.child.seen.change([](Seen& seen) {
      CHECK(seen.records.size() == 1);
      CHECK_FALSE(seen.after_end);
    });
  }

  TEST_CASE("while the budget is taken nothing is read, and what waits comes when it is given back") {
    Pair pair({}, {}, 3 * codec::mib / 2, true);
    pair.start();
    for (std::uint64_t i = 0; i < 6; ++i) pair.accepted->send(pair.mesh.frame(i, codec::mib), Lane::data);
    for (std::size_t i = 1; i <= 6; ++i) {
      REQUIRE(pair.child.wait_for_records(i));
      pair.child.seen.change([&](Seen& seen) {
        CHECK(seen.records.size() == i);  // the next one cannot have been read
        seen.holds.clear();
      });
    }
    CHECK(pair.world.budget.peak_bytes() == codec::mib + codec::record_header_bytes);
  }

  TEST_CASE("close() sends what is queued first; both ends say who closed") {
    Pair pair;
    pair.start();
    for (std::uint64_t i = 0; i < 20; ++i) pair.accepted->send(pair.mesh.frame(i, 300'000), Lane::data);
    pair.accepted->close("the plan changed");
    pair.accepted->send(pair.mesh.frame(99, 10), Lane::data);  // too late: ignored
    const LinkEnd here = pair.parent.wait_for_end();
    CHECK(code(here.why) == "closed_here");
    CHECK(here.detail == "the plan changed");
    CHECK(code(pair.child.wait_for_end().why) == "closed_by_peer");
    CHECK(pair.child.seen.look([](const Seen& seen) { return seen.records.size(); }) == 20);
  }

  TEST_CASE("both ends may close at once") {
    Pair pair;
    pair.start();
    pair.accepted->close("a");
    pair.dialled->close("b");
    pair.accepted->close("again");
    CHECK(pair.parent.wait_for_end().why != EndReason::truncated);
    CHECK(pair.child.wait_for_end().why != EndReason::truncated);
    pair.stop();
    CHECK(pair.parent.seen.look([](const Seen& seen) { return seen.ends.size(); }) == 1);
    CHECK(pair.child.seen.look([](const Seen& seen) { return seen.ends.size(); }) == 1);
  }

  TEST_CASE("a link may be closed instead of started") {
    Pair pair;
    pair.child.start(pair.dialled);
    pair.accepted->close("not wanted");
    CHECK(code(pair.child.wait_for_end().why) == "closed_by_peer");
    pair.parent.start(pair.accepted);
    CHECK(code(pair.parent.wait_for_end().why) == "closed_here");
  }

  TEST_CASE("dropping the pointer does not end a link that was started") {
    Pair pair;
    pair.start();
    pair.dialled.reset();
    pair.child.link.reset();
    pair.accepted->send(pair.mesh.frame(1, 10), Lane::data);
    CHECK(pair.child.wait_for_records(1));
  }

  TEST_CASE("a stopping process ends its links with that reason, once, and refuses new ones") {
    Pair pair;
    pair.start();
    pair.accepted->send(pair.mesh.frame(1, 10), Lane::data);
    REQUIRE(pair.child.wait_for_records(1));
    pair.world.tasks.stop();
    CHECK(code(pair.child.wait_for_end().why) == "stopped");
    CHECK(code(pair.parent.wait_for_end().why) == "truncated");

    pair.stop();
    CHECK(pair.child.seen.look([](const Seen& seen) { return seen.ends.size(); }) == 1);
    CHECK(pair.parent.seen.look([](const Seen& seen) { return seen.ends.size(); }) == 1);

    Pair late;
    late.world.tasks.stop();
    late.child.start(late.dialled);
    CHECK(code(late.child.wait_for_end().why) == "stopped");
  }

  TEST_CASE("an exception of the header check ends the link with its text") {
    Pair pair;
    auto environment = pair.world.environment(
        [](const codec::RecordHeader&, codec::Bytes) -> codec::Result<void> { throw std::runtime_error("boom"); });
    Door door(environment, pair.mesh.load(pair.mesh.paths("second", Role::root)));
    ConnectTarget target;
    target.node = "second";
    target.address = door.address();
    auto result = pair.world.connect(pair.world.environment(pair.mesh), pair.mesh.tls("child"), target);
    REQUIRE(result.link != nullptr);
    pair.parent.start(door.wait_for_link());
    pair.child.start(result.link);
    result.link->send(pair.mesh.message(1), Lane::control);
    const LinkEnd end = pair.parent.wait_for_end();
    CHECK(code(end.why) == "internal_error");
    CHECK(end.detail == "boom");
    pair.stop();
  }
}
