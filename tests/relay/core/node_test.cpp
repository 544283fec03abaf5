// One node against hand-made events: what it says of itself, and when.
#include "relay/core/node.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace deltarelay::relay;
using namespace std::chrono_literals;

namespace {

Node relay_node() {
  NodeConfig config;
  config.name = "leaf";
  config.rank = 2;
  config.candidates = {{"mid", "10.0.0.1:7443"}};
  return Node(config);
}

template <class T>
const T* find(const Actions& actions) {
  for (const Action& action : actions)
    if (const T* found = std::get_if<T>(&action)) return found;
  return nullptr;
}

const Hello* hello_in(const Actions& actions) {
  for (const Action& action : actions)
    if (const auto* sent = std::get_if<SendMessage>(&action))
      if (const auto* hello = std::get_if<Hello>(&sent->message)) return hello;
  return nullptr;
}

ImageState image_at(std::uint64_t version) {
  ImageState image;
  image.version = Version{version};
  image.image.bytes.fill(std::byte{5});
  return image;
}

std::vector<std::byte> record_of(Version version, deltarelay::codec::RecordType type) {
  deltarelay::codec::RecordHeader header;
  header.type = type;
  header.version = version;
  return deltarelay::codec::seal_record(header, {}, nullptr)->bytes;
}

}  // namespace

TEST_SUITE("relay/core/node") {
  TEST_CASE("a host that does not know yet what it holds greets nobody") {
    Node node = relay_node();
    Instant now{};
    for (int i = 0; i < 100; ++i) CHECK(find<ConnectTo>(node.handle(Tick{}, now += 1s)) == nullptr);
    (void)node.handle(ImageOpened{image_at(7)}, now += 1s);
    REQUIRE(find<ConnectTo>(node.handle(Tick{}, now += 1s)) != nullptr);
    const Actions greeting = node.handle(LinkUp{LinkId{1}, "mid", true}, now);
    REQUIRE(hello_in(greeting) != nullptr);
    CHECK(hello_in(greeting)->committed == Version{7});
  }

  TEST_CASE("a host whose image cannot be opened says so up the tree, and greets anew once it can be") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageFailed{"IMAGE_LOCKED", "another process has it", true}, now);
    REQUIRE(find<ConnectTo>(node.handle(Tick{}, now += 1s)) != nullptr);
    CHECK(hello_in(node.handle(LinkUp{LinkId{1}, "mid", true}, now))->committed == Version{});
    Welcome welcome;
    welcome.node = "mid";
    welcome.rank = 1;
    welcome.mode = Mode::sync;
    (void)node.handle(MessageArrived{LinkId{1}, welcome}, now);
    CHECK(node.records().at("leaf").state == NodeState::failed);
    CHECK(node.records().at("leaf").reason_code == "IMAGE_LOCKED");

    const Actions opened = node.handle(ImageOpened{image_at(7)}, now);
    REQUIRE(find<CloseLink>(opened) != nullptr);
    CHECK(find<CloseLink>(opened)->link == LinkId{1});
    (void)node.handle(LinkClosed{LinkId{1}, "closed_here", ""}, now);
    Actions dialled;
    for (int i = 0; i < 10 && find<ConnectTo>(dialled) == nullptr; ++i) dialled = node.handle(Tick{}, now += 1s);
    REQUIRE(find<ConnectTo>(dialled) != nullptr);
    CHECK(hello_in(node.handle(LinkUp{LinkId{2}, "mid", true}, now))->committed == Version{7});
  }

  TEST_CASE("a host that becomes another version by block sync is of none meanwhile") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    (void)node.handle(Tick{}, now += 1s);
    (void)node.handle(LinkUp{LinkId{1}, "mid", true}, now);
    Welcome welcome;
    welcome.node = "mid";
    welcome.rank = 1;
    welcome.mode = Mode::sync;
    (void)node.handle(MessageArrived{LinkId{1}, welcome}, now);
    CHECK(node.records().at("leaf").committed == Version{7});
    SyncManifest manifest;
    manifest.layout_record = record_of(Version{9}, deltarelay::codec::RecordType::layout);
    manifest.end_record = record_of(Version{9}, deltarelay::codec::RecordType::end);
    CHECK(find<PrepareSync>(node.handle(MessageArrived{LinkId{1}, manifest}, now)) != nullptr);
    CHECK(node.records().at("leaf").committed == Version{});
    CHECK(node.records().at("leaf").state == NodeState::syncing);
    // A parent that goes now does not give the version back.
    (void)node.handle(LinkClosed{LinkId{1}, "reset", ""}, now);
    (void)node.handle(SyncPrepared{Version{9}}, now);
    Actions dialled;
    for (int i = 0; i < 10 && find<ConnectTo>(dialled) == nullptr; ++i) dialled = node.handle(Tick{}, now += 1s);
    REQUIRE(find<ConnectTo>(dialled) != nullptr);
    CHECK(hello_in(node.handle(LinkUp{LinkId{2}, "mid", true}, now))->committed == Version{});
  }
}
