// One node against hand-made events: what it says of itself, and when.
#include <doctest/doctest.h>

#include "tests/relay/core/node_events.hpp"

using namespace deltarelay::relay;
using namespace std::chrono_literals;

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

  TEST_CASE("a refit whose ABORT died with the root is undone when another one starts from its base") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    attach(node, now, Mode::stream);
    (void)node.handle(begin_of(8, 7), now);
    CHECK(find<ApplyRecord>(node.handle(sealed(8, 1, RecordType::frame), now)) != nullptr);
    const Actions next = node.handle(begin_of(9, 7), now);
    REQUIRE(find<CompareWithBase>(next) != nullptr);
    CHECK(find<CompareWithBase>(next)->version == Version{8});
    (void)node.handle(BaseCompared{Version{8}, {}, "", ""}, now);
    CHECK(node.records().at("leaf").receiving == Version{9});
  }

  TEST_CASE("a repaired block's frame waits while a second copy of the block is on its way into the image") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    attach(node, now, Mode::stream);
    (void)node.handle(begin_of(8, 7), now);
    (void)node.handle(sealed(8, 1, RecordType::frame), now);
    (void)node.handle(FrameApplied{Version{8}, Sequence{1}, 0, 0, {3}, "", ""}, now);
    CHECK(find<ApplySyncBlocks>(node.handle(MessageArrived{LinkId{1}, SyncBlocks{}}, now)) != nullptr);
    CHECK(find<ApplySyncBlocks>(node.handle(MessageArrived{LinkId{1}, SyncBlocks{}}, now)) != nullptr);
    CHECK(find<ApplyRecord>(node.handle(SyncBlocksApplied{{3}, {}, "", ""}, now)) == nullptr);
    CHECK(find<ApplyRecord>(node.handle(SyncBlocksApplied{{3}, {}, "", ""}, now)) != nullptr);
    CHECK_FALSE(node.sync().running());
  }

  TEST_CASE("a refit's commit that ends after a block sync took the image over is not taken for the sync's") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    attach(node, now, Mode::stream);
    deltarelay::codec::EndPayload end;
    end.image = image_at(8).image;
    (void)node.handle(begin_of(8, 7), now);
    CHECK(find<SyncImage>(node.handle(sealed(8, 1, RecordType::end, end.encode()), now)) != nullptr);
    (void)node.handle(ImageSynced{Version{8}, end.image, "", ""}, now);
    CHECK(find<SaveCommit>(node.handle(sealed(8, 2, RecordType::commit), now)) != nullptr);
    (void)node.handle(LinkClosed{LinkId{1}, "reset", ""}, now);
    attach(node, now, Mode::sync);
    SyncManifest manifest;
    manifest.layout_record = record_of(Version{9}, RecordType::layout);
    manifest.end_record = record_of(Version{9}, RecordType::end);
    CHECK(find<PrepareSync>(node.handle(MessageArrived{LinkId{1}, manifest}, now)) != nullptr);
    (void)node.handle(CommitSaved{image_at(8), "", ""}, now);
    CHECK(node.records().at("leaf").committed == Version{});
    CHECK(node.sync().running());
  }

  TEST_CASE(
      "files that are not the image any more: no version, nothing applied counts, and all begins again on what is "
      "there") {
    const Event losses[] = {FrameApplied{Version{8}, Sequence{1}, 0, 0, {}, image_replaced, "model.safetensors"},
                            ImageSynced{Version{8}, {}, image_replaced, "model.safetensors"},
                            CommitSaved{{}, image_replaced, "model.safetensors"},
                            BaseCompared{Version{8}, {}, image_replaced, "model.safetensors"},
                            SyncBlocksApplied{{}, {}, image_replaced, "model.safetensors"},
                            SyncFailed{image_replaced, "model.safetensors", true},
                            ImageFailed{image_replaced, "model.safetensors", true}};
    for (const Event& loss : losses) {
      CAPTURE(loss.index());
      Node node = relay_node();
      Instant now{};
      (void)node.handle(ImageOpened{image_at(7)}, now);
      attach(node, now, Mode::stream);
      (void)node.handle(begin_of(8, 7), now);
      (void)node.handle(sealed(8, 1, RecordType::frame), now);
      (void)node.handle(sealed(8, 2, RecordType::frame), now);
      CHECK(find<ReopenImage>(node.handle(loss, now)) != nullptr);
      CHECK(find<ReopenImage>(node.handle(loss, now)) == nullptr);
      (void)node.handle(FrameApplied{Version{8}, Sequence{2}, 1, 0, {}, "", ""}, now);
      const NodeRecord lost = node.records().at("leaf");
      CHECK(lost.state == NodeState::failed);
      CHECK(lost.reason_code == image_replaced);
      CHECK(lost.retryable);
      CHECK(lost.committed == Version{});
      CHECK(lost.frames_applied == 0);

      // A decision that comes meanwhile begins no block sync: what is there may well be the version that it starts
      // from.
      CHECK(find<SendMessage>(node.handle(sealed(8, 3, RecordType::commit), now)) == nullptr);
      CHECK_FALSE(node.sync().running());

      const Actions opened = node.handle(ImageOpened{image_at(7)}, now);
      REQUIRE(find<ApplyRecord>(opened) != nullptr);
      CHECK(find<ApplyRecord>(opened)->position == LogPosition{Version{8}, Sequence{1}});
      CHECK(find<CloseLink>(opened) != nullptr);  // the parent was told of another state
      CHECK(node.records().at("leaf").committed == Version{7});
    }
  }

  TEST_CASE("an image that will not be opened again without an operator is not said to be tried again") {
    Node node = relay_node();
    (void)node.handle(ImageFailed{"IMAGE_DAMAGED", "block 3", false}, Instant{});
    CHECK_FALSE(node.records().at("leaf").retryable);
  }

  TEST_CASE("a host that waits for an engine says so without having failed, until the wait is over") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    attach(node, now, Mode::stream);
    (void)node.handle(begin_of(8, 7), now);
    (void)node.handle(sealed(8, 1, RecordType::frame), now);
    (void)node.handle(EnginesAwaited{engine_reads_code, "the refit to v8 waits for pid 4711"}, now);
    CHECK(node.records().at("leaf").state == NodeState::receiving);
    CHECK(node.records().at("leaf").reason_code == engine_reads_code);
    CHECK(node.records().at("leaf").reason_text == "the refit to v8 waits for pid 4711");
    (void)node.handle(EnginesAwaited{}, now);
    CHECK(node.records().at("leaf").reason_code.empty());
  }

  TEST_CASE("an image that cannot be marked as being changed is a failure with its reason, and marked later") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    attach(node, now, Mode::stream);
    (void)node.handle(begin_of(8, 7), now);
    CHECK(find<MarkApplying>(node.handle(sealed(8, 1, RecordType::frame), now)) != nullptr);
    (void)node.handle(MarkFailed{Version{8}, "READ_ONLY", "write deltarelay.json"}, now);
    CHECK(node.records().at("leaf").state == NodeState::failed);
    CHECK(node.records().at("leaf").reason_code == "READ_ONLY");
    CHECK(node.records().at("leaf").retryable);
    CHECK(find<MarkApplying>(node.handle(Tick{}, now += 1s)) == nullptr);
    const Actions again = node.handle(Tick{}, now += 5s);
    REQUIRE(find<MarkApplying>(again) != nullptr);
    CHECK(find<MarkApplying>(again)->to == Version{8});
    CHECK(find<ApplyRecord>(again) == nullptr);  // it was given already, and waits behind the mark
    CHECK(find<MarkApplying>(node.handle(Tick{}, now += 20s)) == nullptr);
    (void)node.handle(FrameApplied{Version{8}, Sequence{1}, 1, 0, {}, "", ""}, now);
    CHECK(node.records().at("leaf").state == NodeState::receiving);
    CHECK(node.records().at("leaf").reason_code.empty());
  }

  TEST_CASE("a trouble is noted once when it begins and once when it is over, however often it is tried again") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    const auto notes = [&](const Event& event) {
      std::vector<std::string> codes;
      for (const Action& action : node.handle(event, now))
        if (const auto* note = std::get_if<Note>(&action)) codes.push_back(note->code);
      return codes;
    };
    using Codes = std::vector<std::string>;
    for (int episode = 0; episode < 2; ++episode) {
      CHECK(notes(LogFailed{"DISK_FULL", "write v8-s0-0.seg at 160"}) == Codes{"DISK_FULL"});
      for (int frame = 0; frame < 100; ++frame)
        CHECK(notes(LogFailed{"DISK_FULL", "write v8-s0-0.seg at " + std::to_string(frame)}) == Codes{});
      CHECK(notes(LogFailed{"", ""}) == Codes{"RECOVERED"});
      CHECK(notes(LogFailed{"", ""}) == Codes{});
    }
  }

  TEST_CASE("blocks that nobody asked for are not given to the disk") {
    Node node = relay_node();
    Instant now{};
    (void)node.handle(ImageOpened{image_at(7)}, now);
    attach(node, now, Mode::stream);
    (void)node.handle(begin_of(8, 7), now);
    (void)node.handle(sealed(8, 1, RecordType::frame), now);
    (void)node.handle(FrameApplied{Version{8}, Sequence{1}, 0, 0, {3}, "", ""}, now);
    CHECK(find<ApplySyncBlocks>(node.handle(MessageArrived{LinkId{1}, SyncBlocks{}}, now)) != nullptr);
    (void)node.handle(MessageArrived{LinkId{1}, SyncUnavailable{{3}}}, now);
    for (int i = 0; i < 10; ++i)
      CHECK(find<ApplySyncBlocks>(node.handle(MessageArrived{LinkId{1}, SyncBlocks{}}, now)) == nullptr);
  }

  TEST_CASE("a parent that goes while the image is hashed is asked for its table again, if that did not come whole") {
    for (const bool came_whole : {false, true}) {
      Node node = relay_node();
      Instant now{};
      (void)node.handle(ImageOpened{}, now);
      attach(node, now, Mode::sync);
      SyncManifest manifest;
      manifest.layout_record = record_of(Version{9}, RecordType::layout);
      manifest.end_record = record_of(Version{9}, RecordType::end);
      CHECK(find<PrepareSync>(node.handle(MessageArrived{LinkId{1}, manifest}, now)) != nullptr);
      (void)node.handle(LinkClosed{LinkId{1}, "reset", ""}, now);
      attach(node, now, Mode::sync);
      (void)node.handle(SyncPrepared{Version{9}}, now);
      if (came_whole) (void)node.handle(SyncCompared{Version{9}, {0}}, now);
      bool asked = false;
      for (int i = 0; i < 3; ++i)
        for (const Action& action : node.handle(Tick{}, now += 100ms))
          if (const auto* sent = std::get_if<SendMessage>(&action))
            asked = asked || std::holds_alternative<SyncManifestRequest>(sent->message);
      CHECK(asked == !came_whole);
    }
  }
}
