// Opening the image at start: what version it is of, whatever happened while the daemon was down.
#include "relay/shell/image_opening.hpp"

#include <doctest/doctest.h>

#include "tests/relay/shell/host_bench.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::testing;

namespace {

/// A root at v1, and a relay with the same image that the ledger knows as v1.
struct Pair {
  Pair() {
    write_sample(mesh.directory.path / "root" / "image");
    write_sample(mesh.directory.path / "relay" / "image");
    root = mesh.open("root", true);
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*root, never)));
    relay = mesh.open("relay");
    LedgerRecord& record = relay->record();
    record.committed = root->record().committed;
    record.image = root->record().image;
    record.layout_record = root->record().layout_record;
    record.end_record = root->record().end_record;
    REQUIRE(relay->ledger().save_digests(record.committed, root->table()->base()).has_value());
    REQUIRE(relay->save_ledger().has_value());
    REQUIRE(opened_version() == Version{1});
  }
  /// As a new process finds the relay.
  Version opened_version() {
    relay.reset();
    relay = mesh.open("relay");
    const Event event = open_image(*relay, never);
    REQUIRE(std::holds_alternative<ImageOpened>(event));
    return std::get<ImageOpened>(event).image.version;
  }
  void damage(std::uint64_t ordinal) const {
    const auto image = relay->image();
    auto content = content_of(image->image(), ordinal);
    content[0] ^= std::byte{1};
    REQUIRE(image->image().write_block(image->layout().block_at(ordinal), content).has_value());
  }

  Mesh mesh;
  std::unique_ptr<HostStore> root, relay;
};

}  // namespace

TEST_SUITE("relay/shell/image_opening") {
  TEST_CASE("a root without a ledger seals its image as version 1, and finds it again") {
    Mesh mesh;
    write_sample(mesh.directory.path / "root" / "image");
    for (int start = 0; start < 2; ++start) {
      auto root = mesh.open("root", true);
      const Event event = open_image(*root, never);
      REQUIRE(std::holds_alternative<ImageOpened>(event));
      const ImageState& image = std::get<ImageOpened>(event).image;
      CHECK(image.version == Version{1});
      REQUIRE(image.end_record);
      REQUIRE(image.layout_record);
      CHECK(codec::verify_record(*image.end_record, mesh.id, mesh.signer->verifier()).has_value());
      CHECK(codec::verify_record(*image.layout_record, mesh.id, mesh.signer->verifier()).has_value());
      CHECK(codec::EndPayload::decode(image.end_record->payload())->image == image.image);
      CHECK(root->record().epoch == codec::Epoch{static_cast<std::uint64_t>(start) + 1});
    }
  }

  TEST_CASE("a relay without a directory, or with an empty one, is open and of no version") {
    Mesh mesh;
    auto relay = mesh.open("relay");
    const Event absent = open_image(*relay, never);
    REQUIRE(std::holds_alternative<ImageOpened>(absent));
    CHECK(std::get<ImageOpened>(absent).image.version == Version{});
    std::filesystem::create_directories(relay->options().image_dir);
    CHECK(std::holds_alternative<ImageOpened>(open_image(*relay, never)));
  }

  TEST_CASE("a root without an image fails and says where it looked") {
    Mesh mesh;
    auto root = mesh.open("root", true);
    const Event event = open_image(*root, never);
    REQUIRE(std::holds_alternative<ImageFailed>(event));
    CHECK(std::get<ImageFailed>(event).text.find("root/image") != std::string::npos);
  }

  TEST_CASE("an image that changed while the daemon was down is of no version") {
    Pair pair;
    pair.damage(2);
    CHECK(pair.opened_version() == Version{});
  }

  TEST_CASE("a root whose image changed while it was down stops and names the block") {
    Pair pair;
    {
      const auto image = pair.root->image();
      auto content = content_of(image->image(), 3);
      content[5] ^= std::byte{4};
      REQUIRE(image->image().write_block(image->layout().block_at(3), content).has_value());
    }
    pair.root.reset();
    auto again = pair.mesh.open("root", true);
    const Event event = open_image(*again, never);
    REQUIRE(std::holds_alternative<ImageFailed>(event));
    CHECK(std::get<ImageFailed>(event).code == "IMAGE_DAMAGED");
    CHECK_FALSE(std::get<ImageFailed>(event).retryable);
    CHECK(std::get<ImageFailed>(event).text.find("1 blocks differ, the first is block 3 of \"a\"") !=
          std::string::npos);
  }

  TEST_CASE("a process that died half-way through a refit is still at its base, and goes on") {
    Pair pair;
    const auto records = encode(*pair.root, Version{2}, make_export(*pair.root, "next", {0, 2, 4}));
    REQUIRE(records.size() > 2);
    append(*pair.relay, records);
    REQUIRE(mark_applying(*pair.relay, Version{1}, Version{2}).has_value());
    apply(*pair.relay, Version{2});
    CHECK(pair.opened_version() == Version{1});
  }

  TEST_CASE("blocks that a power cut threw back to the old version are decoded again from the log") {
    Pair pair;
    const auto records = encode(*pair.root, Version{2}, make_export(*pair.root, "next", {0, 2, 4}));
    append(*pair.relay, records);
    const auto old = content_of(pair.relay->image()->image(), 2);
    apply(*pair.relay, Version{2});
    REQUIRE(save_commit(*pair.relay, SaveCommit{Version{2}, records.back()}).error_code.empty());
    const auto whole = bytes_of(pair.relay->options().image_dir);
    {
      const auto image = pair.relay->image();
      REQUIRE(image->image().write_block(image->layout().block_at(2), old).has_value());
    }
    CHECK(pair.opened_version() == Version{2});
    CHECK(bytes_of(pair.relay->options().image_dir) == whole);
    pair.damage(2);
    CHECK(pair.opened_version() == Version{});
  }

  TEST_CASE(
      "no block is put back under an engine that reads: the start waits for it by name, then lets engines in again") {
    Pair pair;
    const auto records = encode(*pair.root, Version{2}, make_export(*pair.root, "next", {0, 2}));
    append(*pair.relay, records);
    const auto old = content_of(pair.relay->image()->image(), 2);
    apply(*pair.relay, Version{2});
    REQUIRE(pair.relay->image()->image().try_hold_engines().has_value());
    REQUIRE(save_commit(*pair.relay, SaveCommit{Version{2}, records.back()}).error_code.empty());
    const auto image = pair.relay->image();
    REQUIRE(image->image().write_block(image->layout().block_at(2), old).has_value());
    image->image().release_engines();
    const auto lost = bytes_of(pair.relay->options().image_dir);
    {
      const Engine engine(*pair.relay);
      const Event held = open_image(*pair.relay, never);
      REQUIRE(std::holds_alternative<ImageFailed>(held));
      CHECK(std::get<ImageFailed>(held).code == engine_reads_code);
      CHECK(std::get<ImageFailed>(held).retryable);
      CHECK(std::get<ImageFailed>(held).text.find("pid " + std::to_string(::getpid())) != std::string::npos);
      CHECK(bytes_of(pair.relay->options().image_dir) == lost);
    }
    const Event opened = open_image(*pair.relay, never);
    REQUIRE(std::holds_alternative<ImageOpened>(opened));
    CHECK(std::get<ImageOpened>(opened).image.version == Version{2});
    CHECK(bytes_of(pair.relay->options().image_dir) != lost);
    const Engine again(*pair.relay);
  }

  TEST_CASE("blocks of an aborted refit do not pass for the base") {
    Pair pair;
    auto records = encode(*pair.root, Version{2}, make_export(*pair.root, "next", {1}));
    append(*pair.relay, records);
    apply(*pair.relay, Version{2});
    codec::RecordHeader abort = records.back()->header;
    abort.type = codec::RecordType::abort;
    abort.sequence = codec::next(abort.sequence);
    append(*pair.relay, {codec::seal_record(abort, {}, pair.root->signer())});
    CHECK(pair.opened_version() == Version{});
  }

  TEST_CASE("blocks of a refit explain themselves only, not their neighbours") {
    Pair pair;
    append(*pair.relay, encode(*pair.root, Version{2}, make_export(*pair.root, "next", {1})));
    apply(*pair.relay, Version{2});
    pair.damage(2);
    CHECK(pair.opened_version() == Version{});
  }

  TEST_CASE("a refit that the root did not sign explains nothing") {
    Pair pair;
    const Mesh stranger;
    std::vector<codec::RecordPtr> forged;
    for (const codec::RecordPtr& record : encode(*pair.root, Version{2}, make_export(*pair.root, "next", {1})))
      forged.push_back(codec::seal_record(record->header, record->payload(), &*stranger.signer));
    append(*pair.relay, forged);
    apply(*pair.relay, Version{2});
    CHECK(pair.opened_version() == Version{});
    CHECK(pair.relay->log().bytes() == 0);
  }

  TEST_CASE("a record that the root did not sign ends its refit there: what comes before it still explains") {
    Pair pair;
    const Mesh stranger;
    auto records = encode(*pair.root, Version{2}, make_export(*pair.root, "next", {1}));
    records.back() = codec::seal_record(records.back()->header, records.back()->payload(), &*stranger.signer);
    append(*pair.relay, records);
    apply(*pair.relay, Version{2});
    CHECK(pair.opened_version() == Version{1});
    const auto end = pair.relay->log().read(Version{2}, codec::StripeId{0}, records.back()->header.sequence);
    REQUIRE_FALSE(end.has_value());
    CHECK(end.error().code == store_errc::not_in_log);
  }

  TEST_CASE("a refit from another image of the same version explains nothing, for it will never be gone on with") {
    Pair pair;
    const auto directory = make_export(*pair.root, "next", {1});
    pair.root->record().image.bytes[0] ^= std::byte{1};
    append(*pair.relay, encode(*pair.root, Version{2}, directory));
    apply(*pair.relay, Version{2});
    CHECK(pair.opened_version() == Version{});
  }

  TEST_CASE("after a start the marker says what the image was found to be, whatever it said before") {
    const std::string whole = R"("version":"1","state":"committed")";
    const std::string on_the_way = R"("version":"1","state":"applying","target":"2")";
    const std::string none = R"("version":"0","state":"applying")";
    for (const char* before : {"", "{", "[]", R"({"schema":1,"version":"9","state":"committed","digest":"00"})"}) {
      const std::string text = before;
      CAPTURE(text);
      Pair pair;
      const auto marker = pair.relay->options().image_dir / "deltarelay.json";
      const auto spoil = [&] {
        std::filesystem::remove(marker);
        if (!text.empty()) REQUIRE(replace_file(FileOps::real(), marker, std::as_bytes(std::span(text))).has_value());
      };
      spoil();
      CHECK(pair.opened_version() == Version{1});
      CHECK(marker_of(*pair.relay).find(whole) != std::string::npos);
      append(*pair.relay, encode(*pair.root, Version{2}, make_export(*pair.root, "next", {0, 2})));
      apply(*pair.relay, Version{2}, 1);
      spoil();
      CHECK(pair.opened_version() == Version{1});
      CHECK(marker_of(*pair.relay).find(on_the_way) != std::string::npos);
      pair.damage(3);
      spoil();
      CHECK(pair.opened_version() == Version{});
      // Without a marker nothing is stated, and nothing need be.
      CHECK(marker_of(*pair.relay).empty() == text.empty());
      CHECK((marker_of(*pair.relay).find(none) != std::string::npos) == !text.empty());
    }
  }

  TEST_CASE("a host of no version does not leave a marker that states one") {
    Pair pair;
    REQUIRE(mark_committed(*pair.relay, {}).has_value());
    pair.relay->record().committed = Version{};
    REQUIRE(pair.relay->save_ledger().has_value());
    CHECK(pair.opened_version() == Version{});
    CHECK(marker_of(*pair.relay).find(R"("version":"0","state":"applying")") != std::string::npos);
  }

  TEST_CASE("a start that cannot put a false marker right fails and is tried again") {
    Pair pair;
    REQUIRE(mark_applying(*pair.relay, Version{1}, Version{2}).has_value());
    const std::string false_word = marker_of(*pair.relay);
    {
      const MarkerBlocked blocked(*pair.relay);
      for (int damaged = 0; damaged < 2; ++damaged) {
        const Event event = open_image(*pair.relay, never);
        REQUIRE(std::holds_alternative<ImageFailed>(event));
        CHECK(std::get<ImageFailed>(event).retryable);
        CHECK(std::get<ImageFailed>(event).text.find("deltarelay.json") != std::string::npos);
        CHECK(marker_of(*pair.relay) == false_word);
        pair.damage(2);
      }
    }
    CHECK(pair.opened_version() == Version{1});
  }

  TEST_CASE("a marker that is right is not written again") {
    Pair pair;
    REQUIRE(mark_committed(*pair.relay, {"a"}).has_value());
    const MarkerBlocked blocked(*pair.relay);
    CHECK(pair.opened_version() == Version{1});
    CHECK(marker_of(*pair.relay).find(R"(["a"])") != std::string::npos);
  }

  TEST_CASE("a lost digest table is no loss as long as the image is whole") {
    Pair pair;
    for (const auto& entry : std::filesystem::directory_iterator(pair.relay->options().state_dir))
      if (entry.path().filename().string().find("digests") != std::string::npos) std::filesystem::remove(entry.path());
    CHECK(pair.opened_version() == Version{1});
    pair.damage(0);
    for (const auto& entry : std::filesystem::directory_iterator(pair.relay->options().state_dir))
      if (entry.path().filename().string().find("digests") != std::string::npos) std::filesystem::remove(entry.path());
    CHECK(pair.opened_version() == Version{});
  }

  TEST_CASE("a state directory of another node or of a running daemon is refused") {
    Mesh mesh;
    auto relay = mesh.open("relay");
    HostStoreOptions options = relay->options();
    auto twice = HostStore::open(options, mesh.signer->verifier(), std::nullopt);
    REQUIRE_FALSE(twice.has_value());
    CHECK(twice.error().code == store_errc::already_locked);
    relay.reset();
    options.node = "other";
    auto other = HostStore::open(options, mesh.signer->verifier(), std::nullopt);
    REQUIRE_FALSE(other.has_value());
    CHECK(other.error().text().find("\"relay\"") != std::string::npos);
  }
}
