// A refit's effects on ledger and image, from encoding to commit or abort.
#include "relay/shell/refit_store.hpp"

#include <doctest/doctest.h>

#include "tests/relay/shell/host_bench.hpp"
#include "tests/relay/shell/host_sync.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::testing;

namespace {

/// A root at v1 with companions, and an export of v2 in which blocks 0, 2 and 5 differ and config.json is another.
struct Bench {
  Bench() {
    write_sample(mesh.directory.path / "root" / "image");
    write("root/image/config.json", "{\"step\": 1}");
    root = mesh.open("root", true);
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*root, never)));
    export_directory = make_export(*root, "next", {0, 2, 5});
    write("root/next/config.json", "{\"step\": 2}");
    records = encode(*root, Version{2}, export_directory);
    REQUIRE_FALSE(records.empty());
  }
  void write(const std::string& name, const std::string& text) const {
    REQUIRE(replace_file(FileOps::real(), mesh.directory.path / name, std::as_bytes(std::span(text))).has_value());
  }
  [[nodiscard]] std::string read(const std::filesystem::path& file) const {
    auto content = read_file(FileOps::real(), file, codec::mib);
    REQUIRE(content.has_value());
    return {reinterpret_cast<const char*>(content->data()), content->size()};
  }

  Mesh mesh;
  std::unique_ptr<HostStore> root;
  std::filesystem::path export_directory;
  std::vector<codec::RecordPtr> records;
};

}  // namespace

TEST_SUITE("relay/shell/refit_store") {
  TEST_CASE(
      "a refit applied, synced and committed leaves the export's bytes, its small files, and a ledger that says so") {
    Bench bench;
    HostStore& root = *bench.root;
    append(root, bench.records);
    apply(root, Version{2});
    const ImageSynced synced = sync_image(root, Version{2});
    CHECK(synced.error_code.empty());
    const auto end = codec::EndPayload::decode(bench.records.back()->payload());
    REQUIRE(end.has_value());
    CHECK(synced.image == end->image);
    const CommitSaved saved = save_commit(root, SaveCommit{Version{2}, bench.records.back()});
    CHECK(saved.error_code.empty());
    CHECK(saved.image.version == Version{2});
    CHECK(bytes_of(root.options().image_dir) == bytes_of(bench.export_directory));
    CHECK(bench.read(root.options().image_dir / "config.json") == "{\"step\": 2}");
    const std::string marker = bench.read(root.options().image_dir / "deltarelay.json");
    CHECK(marker.find("\"version\":\"2\"") != std::string::npos);
    CHECK(marker.find("\"committed\"") != std::string::npos);
    bench.root.reset();
    bench.root = bench.mesh.open("root", true);
    const Event event = open_image(*bench.root, never);
    REQUIRE(std::holds_alternative<ImageOpened>(event));
    CHECK(std::get<ImageOpened>(event).image.version == Version{2});
  }

  TEST_CASE("a commit is refused when a frame was never applied") {
    Bench bench;
    HostStore& root = *bench.root;
    append(root, bench.records);
    CHECK(sync_image(root, Version{2}).image != codec::EndPayload::decode(bench.records.back()->payload())->image);
    const CommitSaved saved = save_commit(root, SaveCommit{Version{2}, bench.records.back()});
    CHECK(saved.error_code == "IMAGE_DIGEST_MISMATCH");
    CHECK(root.record().committed == Version{1});
    CHECK(bench.read(root.options().image_dir / "config.json") == "{\"step\": 1}");
  }

  TEST_CASE("nothing is committed, and no small file replaced, under an engine that reads") {
    Bench bench;
    HostStore& root = *bench.root;
    append(root, bench.records);
    apply(root, Version{2});
    {
      const Engine engine(root);
      CHECK(save_commit(root, SaveCommit{Version{2}, bench.records.back()}).error_code == engine_reads_code);
      CHECK(root.record().committed == Version{1});
      CHECK(bench.read(root.options().image_dir / "config.json") == "{\"step\": 1}");
    }
    CHECK(save_commit(root, SaveCommit{Version{2}, bench.records.back()}).error_code.empty());
  }

  TEST_CASE("a marker that cannot be written after a commit is written later; the commit stands") {
    Bench bench;
    HostStore& root = *bench.root;
    append(root, bench.records);
    REQUIRE(mark_applying(root, Version{1}, Version{2}).has_value());
    apply(root, Version{2});
    {
      const MarkerBlocked blocked(root);
      CHECK(save_commit(root, SaveCommit{Version{2}, bench.records.back()}).error_code.empty());
      retry_marker(root);
      CHECK(marker_of(root).find("\"applying\"") != std::string::npos);
    }
    retry_marker(root);
    CHECK(marker_of(root).find(R"("version":"2","state":"committed")") != std::string::npos);
    CHECK(marker_of(root).find(R"("changed_tensors":["a","c"])") != std::string::npos);
    CHECK_FALSE(root.marker_due);
  }

  TEST_CASE("after an abort exactly the blocks that were applied differ from the base") {
    Bench bench;
    HostStore& root = *bench.root;
    append(root, bench.records);
    CHECK(compare_with_base(root, Version{2}).differing.empty());
    apply(root, Version{2});
    const BaseCompared compared = compare_with_base(root, Version{2});
    CHECK(compared.error_code.empty());
    CHECK(compared.differing == std::vector<std::uint64_t>{0, 2, 5});
  }

  TEST_CASE("an export that changes while it is encoded gives no END") {
    Bench bench;
    auto source = Export::open(bench.export_directory, bench.root->image()->layout());
    REQUIRE(source.has_value());
    bench.write("root/next/model.safetensors", bench.read(bench.export_directory / "model.safetensors") + "x");
    CHECK((*source)->check_unchanged().has_error());
  }

  TEST_CASE("an export of other tensors is refused and the tensor named") {
    Bench bench;
    const auto other = bench.mesh.directory.path / "other";
    std::filesystem::create_directories(other);
    bench.write("other/model.safetensors",
                shard_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})") + "x");
    auto source = Export::open(other, bench.root->image()->layout());
    REQUIRE_FALSE(source.has_value());
    CHECK(source.error().text().find("missing: \"b\"") != std::string::npos);
    CHECK(source.error().text().find("\"a\": ") != std::string::npos);
  }
}

TEST_SUITE("relay/shell/sync_store") {
  TEST_CASE("an empty host becomes the parent's version, shard by shard and byte by byte") {
    Bench bench;
    auto relay = bench.mesh.open("relay");
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*relay, never)));
    SyncReceiver receiver(*relay);
    CHECK(sync(*bench.root, *relay, receiver).image.version == Version{1});
    CHECK(bytes_of(relay->options().image_dir) == bytes_of(bench.root->options().image_dir));
    CHECK(bench.read(relay->options().image_dir / "config.json") == "{\"step\": 1}");
  }

  TEST_CASE("small files that come while an engine still reads are written when it has let go") {
    Bench bench;
    const auto image = bench.mesh.directory.path / "relay" / "image";
    std::filesystem::create_directories(image);
    std::filesystem::copy_file(bench.export_directory / "model.safetensors", image / "model.safetensors");
    bench.write("relay/image/config.json", "{\"step\": 0}");
    auto relay = bench.mesh.open("relay");
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*relay, never)));
    SyncReceiver receiver(*relay);
    const ImageState state = image_state_of(bench.root->record());
    REQUIRE_FALSE(receiver.prepare(PrepareSync{state.layout_record, state.end_record}));
    const auto end = codec::EndPayload::decode(state.end_record->payload());
    REQUIRE(end->companions.size() == 1);
    CHECK(receiver.apply_file(ApplySyncFile{read_sync_file(*bench.root, end->companions[0])->file_payload}).empty());
    CHECK(bench.read(image / "config.json") == "{\"step\": 0}");
    CHECK_FALSE(receiver.files_complete());
    REQUIRE(std::holds_alternative<SyncPrepared>(receiver.begin(never)));
    CHECK(bench.read(image / "config.json") == "{\"step\": 1}");
    CHECK(receiver.files_complete());
  }

  TEST_CASE("a host with another image of the model asks only for what differs") {
    Bench bench;
    const auto image = bench.mesh.directory.path / "relay" / "image";
    std::filesystem::create_directories(image);
    std::filesystem::copy_file(bench.export_directory / "model.safetensors", image / "model.safetensors");
    auto relay = bench.mesh.open("relay");
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*relay, never)));
    SyncReceiver receiver(*relay);
    const ImageState state = image_state_of(bench.root->record());
    REQUIRE_FALSE(receiver.prepare(PrepareSync{state.layout_record, state.end_record}));
    REQUIRE(std::holds_alternative<SyncPrepared>(receiver.begin(never)));
    CHECK(relay->record().committed == Version{});
    CHECK_FALSE(receiver.store_digests(StoreSyncDigests{0, all_digests(*bench.root)}));
    const auto compared = receiver.compare();
    REQUIRE(compared);
    CHECK(std::get<SyncCompared>(*compared).missing == std::vector<std::uint64_t>{0, 2, 5});
  }

  TEST_CASE("a manifest of another key, and a table that the root did not seal, are refused") {
    Bench bench;
    auto relay = bench.mesh.open("relay");
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*relay, never)));
    SyncReceiver receiver(*relay);
    const ImageState state = image_state_of(bench.root->record());
    codec::RecordHeader header = state.end_record->header;
    const Mesh stranger;
    const auto forged = codec::seal_record(header, state.end_record->payload(), &*stranger.signer);
    const auto refused = receiver.prepare(PrepareSync{state.layout_record, forged});
    REQUIRE(refused);
    CHECK(refused->code == "MANIFEST_INVALID");
    CHECK_FALSE(std::filesystem::exists(relay->options().image_dir));

    REQUIRE_FALSE(receiver.prepare(PrepareSync{state.layout_record, state.end_record}));
    REQUIRE(std::holds_alternative<SyncPrepared>(receiver.begin(never)));
    auto digests = all_digests(*bench.root);
    digests[1].bytes[0] ^= std::byte{1};
    CHECK_FALSE(receiver.store_digests(StoreSyncDigests{0, digests}));
    const auto compared = receiver.compare();
    REQUIRE(compared);
    CHECK(std::holds_alternative<SyncFailed>(*compared));
  }

  TEST_CASE("blocks with another content than the table's are refused and not written") {
    Bench bench;
    auto relay = bench.mesh.open("relay");
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*relay, never)));
    SyncReceiver receiver(*relay);
    REQUIRE(sync(*bench.root, *relay, receiver).image.version == Version{1});
    // From a host whose block is of another version than the one wanted here.
    append(*bench.root, bench.records);
    apply(*bench.root, Version{2});
    const auto before = bytes_of(relay->options().image_dir);
    const ServedBlocks served = read_sync_blocks(*bench.root, {0, 1});
    REQUIRE(served.messages.size() == 1);
    const SyncBlocksApplied applied =
        apply_sync_blocks(*relay, ApplySyncBlocks{served.messages[0].frame_payload, {0, 1}, true});
    CHECK(applied.verified == std::vector<std::uint64_t>{1});
    CHECK(applied.refused == std::vector<std::uint64_t>{0});
    CHECK(bytes_of(relay->options().image_dir) == before);
  }

  TEST_CASE("a block that is neither at the committed nor at the coming version is not served") {
    Bench bench;
    const auto image = bench.root->image();
    std::vector<std::byte> content(image->layout().size_of(image->layout().block_at(1)), std::byte{9});
    REQUIRE(image->image().write_block(image->layout().block_at(1), content).has_value());
    const ServedBlocks served = read_sync_blocks(*bench.root, {2, 1, 1, 99});
    CHECK(served.unavailable == std::vector<std::uint64_t>{1, 99});
    REQUIRE(served.messages.size() == 1);
    CHECK(codec::FrameView::parse(served.messages[0].frame_payload)->entries.size() == 1);
  }

  TEST_CASE("a host that holds another model says which tensors differ and keeps its files") {
    Bench bench;
    const auto image = bench.mesh.directory.path / "relay" / "image";
    std::filesystem::create_directories(image);
    bench.write("relay/image/model.safetensors",
                shard_header(R"({"z":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})") + "x");
    const auto before = bytes_of(image);
    auto relay = bench.mesh.open("relay");
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*relay, never)));
    SyncReceiver receiver(*relay);
    const ImageState state = image_state_of(bench.root->record());
    const auto failed = receiver.prepare(PrepareSync{state.layout_record, state.end_record});
    REQUIRE(failed);
    CHECK(failed->code == "LAYOUT_DIFFERS");
    CHECK_FALSE(failed->retryable);
    CHECK(failed->text.find("\"z\"") != std::string::npos);
    CHECK(bytes_of(image) == before);
  }
}
