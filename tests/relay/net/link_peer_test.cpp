// Links to peers that die, stall, or end in the wrong place.
#include <doctest/doctest.h>

#include "tests/relay/net/net_world.hpp"
#include "tests/relay/net/raw_client.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::net;
using namespace deltarelay::tests;

namespace {

/// A link of ours whose other end is a RawClient.
struct Exposed {
  explicit Exposed(LinkConfig config = {}) {
    auto environment = world.environment(mesh);
    environment.config = config;
    Door door(environment, mesh.tls("parent", Role::root));
    raw.emplace(door.listener->port(), mesh.paths("child"));
    REQUIRE_FALSE(raw->handshake_error());
    link = door.wait_for_link();
    parent.start(link);
    door.listener->stop();
  }
  ~Exposed() { world.stop(); }
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;

  TestMesh mesh;
  NetWorld world;
  Endpoint parent;
  std::optional<RawClient> raw;
  std::shared_ptr<Link> link;
};

}  // namespace

TEST_SUITE("relay/net/link: peers that misbehave") {
  TEST_CASE("an end inside a record is truncation, with close_notify and without") {
    for (const bool with_notify : {true, false}) {
      CAPTURE(with_notify);
      Exposed exposed;
      const auto record = exposed.mesh.frame(1, 100'000);
      exposed.raw->write(exposed.mesh.frame(0, 10)->bytes);
      exposed.raw->write(codec::Bytes(record->bytes).first(60'000));
      with_notify ? exposed.raw->send_close_notify() : exposed.raw->cut();
      CHECK(code(exposed.parent.wait_for_end().why) == "truncated");
      CHECK(exposed.parent.seen.look([](const Seen& seen) { return seen.records.size(); }) == 1);
      CHECK(exposed.world.budget.used_bytes() == 0);
    }
  }

  TEST_CASE("between two records only close_notify is an orderly end") {
    {
      Exposed exposed;
      exposed.raw->write(exposed.mesh.message(1)->bytes);
      exposed.raw->send_close_notify();
      CHECK(code(exposed.parent.wait_for_end().why) == "closed_by_peer");
      CHECK(exposed.parent.seen.look([](const Seen& seen) { return seen.records.size(); }) == 1);
    }
    Exposed exposed;
    exposed.raw->cut();
    CHECK(code(exposed.parent.wait_for_end().why) == "truncated");
  }

  TEST_CASE("a reset is told as one") {
    Exposed exposed;
    exposed.raw->reset();
    CHECK(code(exposed.parent.wait_for_end().why) == "reset");
  }

  TEST_CASE("resets while we write never end the process") {
    for (int i = 0; i < 20; ++i) {
      Exposed exposed;
      for (std::uint64_t s = 0; s < 8; ++s) exposed.link->send(exposed.mesh.frame(s, codec::mib), Lane::data);
      exposed.raw->reset();
      // Whichever of a read and a write is first takes the socket's error; the other one finds a mere end.
      const EndReason why = exposed.parent.wait_for_end().why;
      CHECK((why == EndReason::reset || why == EndReason::truncated));
    }
  }

  TEST_CASE("a peer from which no byte comes is silent after dead_after") {
    LinkConfig config;
    config.dead_after = 100ms;
    Exposed exposed(config);
    const LinkEnd end = exposed.parent.wait_for_end();
    CHECK(code(end.why) == "silent");
    CHECK(end.detail == "no byte came for 0.1 s");
  }

  TEST_CASE("a peer that takes no byte is told after progress_after, and what was queued is let go") {
    LinkConfig config;
    config.progress_after = 200ms;
    Exposed exposed(config);
    std::weak_ptr<const codec::Record> last;
    for (std::uint64_t i = 0; i < 64; ++i) {
      auto record = exposed.mesh.frame(i, codec::mib);
      last = record;
      exposed.link->send(std::move(record), Lane::data);
    }
    const LinkEnd end = exposed.parent.wait_for_end();
    CHECK(code(end.why) == "no_progress");
    CHECK(end.detail == "the peer took no byte for 0.2 s");
    CHECK(last.expired());
  }

  TEST_CASE("more than the queue may hold ends the link instead of growing") {
    LinkConfig config;
    config.send_queue_bytes_max = 2 * codec::mib;
    Exposed exposed(config);
    // One more than the kernel's buffers can take, whatever their size: the peer reads nothing.
    const auto record = exposed.mesh.frame(1, codec::mib);
    for (int i = 0; i < 1000 && exposed.parent.seen.look([](const Seen& seen) { return seen.ends.empty(); }); ++i)
      exposed.link->send(record, Lane::data);
    const LinkEnd end = exposed.parent.wait_for_end();
    CHECK(code(end.why) == "send_queue_full");
  }

  TEST_CASE("close() never takes longer than close_within, whatever the peer does") {
    LinkConfig config;
    config.close_within = 200ms;
    Exposed exposed(config);
    for (std::uint64_t i = 0; i < 64; ++i) exposed.link->send(exposed.mesh.frame(i, codec::mib), Lane::data);
    const auto before = std::chrono::steady_clock::now();
    exposed.link->close("enough");
    const LinkEnd end = exposed.parent.wait_for_end();
    CHECK(code(end.why) == "closed_here");
    CHECK(end.detail == "enough");
    const auto took = std::chrono::steady_clock::now() - before;
    CHECK(took >= 200ms);
    CHECK(took < 10s);
  }

  TEST_CASE("the peer gets close_notify when we close") {
    Exposed exposed;
    exposed.link->close("enough");
    CHECK(exposed.raw->read_to_end() == boost::asio::error::eof);
    exposed.raw->send_close_notify();
    exposed.raw->cut();
    CHECK(code(exposed.parent.wait_for_end().why) == "closed_here");
  }

  TEST_CASE("a peer may ask for new keys again and again while records flow both ways") {
    Exposed exposed;
    std::vector<std::byte> expected;
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto record = exposed.mesh.frame(i, 10'000);
      expected.insert(expected.end(), record->bytes.begin(), record->bytes.end());
      exposed.link->send(record, Lane::data);
      exposed.raw->update_keys();
      exposed.raw->write(exposed.mesh.message(i, 100)->bytes);
    }
    CHECK(exposed.raw->read(expected.size()) == expected);
    CHECK(exposed.parent.wait_for_records(100));
    CHECK(exposed.parent.seen.look([](const Seen& seen) { return seen.ends.empty(); }));
  }
}
