// Roots that die in the middle, come back without their ledger, or use numbers anew: what one node makes of it.
#include <doctest/doctest.h>

#include "tests/relay/core/node_events.hpp"

using namespace deltarelay::relay;

TEST_SUITE("relay/core/node_history") {
  TEST_CASE("a record that cannot be decoded ends the link, and is neither stored nor passed on") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    attach(node, now, Mode::stream);
    (void)node.handle(begin_of(8, 7), now);
    const Actions refused = node.handle(sealed(8, 1, RecordType::end), now);
    CHECK(find<AppendRecord>(refused) == nullptr);
    REQUIRE(find<CloseLink>(refused) != nullptr);
    CHECK(find<CloseLink>(refused)->code == "PROTOCOL");
    CHECK(node.log().find(Version{8})->next_sequence() == Sequence{1});
  }

  TEST_CASE(
      "a number used anew by a root of a later epoch: the host leaves its own history, its log and its children") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    attach(node, now, Mode::stream);
    (void)node.handle(begin_of(8, 7), now);
    (void)node.handle(sealed(8, 1, RecordType::frame), now);
    (void)node.handle(LinkUp{LinkId{9}, "below", false}, now);
    FrameReceived again = begin_of(8, 7);
    deltarelay::codec::RecordHeader header = again.record->header;
    header.epoch = Epoch{1'700'000'000};
    again.record = deltarelay::codec::seal_record(header, again.record->payload(), nullptr);
    const Actions asked = node.handle(again, now);
    CHECK(find<AppendRecord>(asked) == nullptr);
    CHECK(node.sync().phase() == BlockSync::Phase::wait_manifest);
    SyncManifest manifest;
    manifest.layout_record = record_of(Version{7}, RecordType::layout);
    manifest.end_record = record_of(Version{7}, RecordType::end);
    const Actions left = node.handle(MessageArrived{LinkId{1}, manifest}, now);
    REQUIRE(find<DropRefit>(left) != nullptr);
    CHECK(find<DropRefit>(left)->version == Version{8});
    REQUIRE(find<CloseLink>(left) != nullptr);
    CHECK(find<CloseLink>(left)->link == LinkId{9});
    CHECK(node.log().refits().empty());
  }

  TEST_CASE("a child is answered when this node knows what it holds, and by content, not by number") {
    const auto greeting = [](std::uint8_t content, LogPosition next, Epoch begun) {
      Hello hello;
      hello.node = "below";
      hello.rank = 3;
      hello.committed = Version{7};
      hello.image.bytes.fill(std::byte{content});
      hello.resume = {next, begun};
      return MessageArrived{LinkId{9}, hello};
    };
    const auto answer = [](const Actions& actions) -> std::optional<Mode> {
      for (const Action& action : actions)
        if (const auto* sent = std::get_if<SendMessage>(&action))
          if (const auto* welcome = std::get_if<Welcome>(&sent->message)) return welcome->mode;
      return std::nullopt;
    };
    const LogPosition middle{Version{8}, Sequence{1}};
    struct Case {
      std::uint8_t content;
      LogPosition next;
      Epoch begun;
      Mode expected;
    };
    for (const Case& one : {Case{5, {}, {}, Mode::stream}, Case{6, {}, {}, Mode::sync},
                            Case{5, middle, Epoch{0}, Mode::stream}, Case{5, middle, Epoch{3}, Mode::sync}}) {
      Node node = relay_node();
      Instant now{};
      node.restore(begin_of(8, 7).record);
      (void)node.handle(LinkUp{LinkId{9}, "below", false}, now);
      CHECK(answer(node.handle(greeting(one.content, one.next, one.begun), now)) == std::nullopt);
      CHECK(answer(node.handle(ImageOpened{image_at(7)}, now)) == one.expected);
    }
    Node broken = relay_node();
    (void)broken.handle(LinkUp{LinkId{9}, "below", false}, Instant{});
    (void)broken.handle(greeting(5, {}, {}), Instant{});
    CHECK(find<CloseLink>(broken.handle(ImageFailed{"IMAGE_DAMAGED", "block 3", false}, Instant{})) != nullptr);
  }

  TEST_CASE("a root counts who holds the content, not who says the number") {
    NodeConfig config;
    config.name = "root";
    config.is_root = true;
    config.expected = {"root", "leaf"};
    Node root(config);
    Instant now{};
    (void)root.handle(ImageOpened{image_at(7)}, now);
    (void)root.handle(LinkUp{LinkId{9}, "leaf", false}, now);
    (void)root.handle(PublishRequested{1, "export", std::nullopt, "all"}, now);
    (void)root.handle(ManifestSaved{Version{8}, "", ""}, now);
    deltarelay::codec::EndPayload end;
    end.image.bytes.fill(std::byte{9});
    (void)root.handle(RecordProduced{begin_of(8, 7).record}, now);
    (void)root.handle(RecordProduced{sealed(8, 1, RecordType::end, end.encode()).record}, now);
    (void)root.handle(EncodeEnded{Version{8}, "", ""}, now);
    auto says = [&, sequence = std::uint64_t{0}](Version committed, std::uint8_t image, std::uint8_t target) mutable {
      NodeRecord record;
      record.name = "leaf";
      record.report_sequence = ++sequence;
      record.committed = committed;
      record.image.bytes.fill(std::byte{image});
      record.receiving = Version{8};
      record.target.bytes.fill(std::byte{target});
      record.state = NodeState::prepared;
      return root.handle(MessageArrived{LinkId{9}, Report{{record}}}, now);
    };
    CHECK(find<SaveDecision>(says(Version{8}, 1, 1)) == nullptr);
    CHECK(find<SaveDecision>(says(Version{7}, 5, 1)) == nullptr);
    REQUIRE(find<SaveDecision>(says(Version{7}, 5, 9)) != nullptr);
    CHECK(root.refit().prepared_nodes == 2);
  }

  TEST_CASE("a root gives no number that the fleet has used, and none above the highest") {
    NodeConfig config;
    config.name = "root";
    config.is_root = true;
    Node root(config);
    Instant now{};
    (void)root.handle(ImageOpened{image_at(1)}, now);
    (void)root.handle(LinkUp{LinkId{9}, "leaf", false}, now);
    NodeRecord record;
    record.name = "leaf";
    record.committed = Version{41};
    (void)root.handle(MessageArrived{LinkId{9}, Report{{record}}}, now);
    record.report_sequence = 1;
    record.receiving = Version{std::uint64_t{1} << 60};  // nobody counted that far
    (void)root.handle(MessageArrived{LinkId{9}, Report{{record}}}, now);
    const Actions refused =
        root.handle(PublishRequested{1, "export", deltarelay::codec::next(version_max), "all"}, now);
    REQUIRE(find<Answer>(refused) != nullptr);
    CHECK(find<Answer>(refused)->code == "USAGE");
    const Actions opened = root.handle(PublishRequested{2, "export", std::nullopt, "all"}, now);
    REQUIRE(find<SaveManifest>(opened) != nullptr);
    CHECK(find<SaveManifest>(opened)->version == Version{42});
  }
}
