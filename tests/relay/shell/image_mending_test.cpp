// A relay whose shards were spoiled while the daemon was down: version 0 at the start, and whole again by block sync.
#include "relay/shell/image_mending.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include "tests/relay/shell/host_bench.hpp"
#include "tests/relay/shell/host_sync.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::testing;
namespace fs = std::filesystem;

namespace {

/// A root at v1, and a relay that block sync brought there.
struct Pair {
  Pair() {
    write_sample(mesh.directory.path / "root" / "image");
    root = mesh.open("root", true);
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*root, never)));
    relay = mesh.open("relay");
    REQUIRE(std::holds_alternative<ImageOpened>(open_image(*relay, never)));
    fill();
    whole = bytes_of(image());
  }
  void fill() {
    SyncReceiver receiver(*relay);
    REQUIRE(sync(*root, *relay, receiver).image.version == Version{1});
  }
  [[nodiscard]] fs::path image() const { return mesh.directory.path / "relay" / "image"; }
  [[nodiscard]] fs::path shard() const { return image() / "model.safetensors"; }
  Event opened_again() {
    relay.reset();
    relay = mesh.open("relay");
    return open_image(*relay, never);
  }
  [[nodiscard]] std::string marker() const {
    auto content = read_file(FileOps::real(), image() / "deltarelay.json", codec::mib);
    REQUIRE(content.has_value());
    return {reinterpret_cast<const char*>(content->data()), content->size()};
  }

  Mesh mesh;
  std::unique_ptr<HostStore> root, relay;
  std::vector<std::byte> whole;
};

}  // namespace

TEST_SUITE("relay/shell/image_mending") {
  TEST_CASE("a relay with a spoiled shard starts without a version, and block sync makes it whole") {
    Pair pair;
    SUBCASE("cut short") {
      fs::resize_file(pair.shard(), pair.whole.size() - 4096);
    }
    SUBCASE("emptied") {
      fs::resize_file(pair.shard(), 0);
    }
    SUBCASE("taken away") {
      fs::remove(pair.shard());
    }
    CHECK(can_be_mended(pair.relay->options().state_dir, pair.image()));
    const Event event = pair.opened_again();
    REQUIRE(std::holds_alternative<ImageOpened>(event));
    CHECK(std::get<ImageOpened>(event).image.version == Version{});
    // Until the sync ends, engines are told that the zeros are no version.
    CHECK(pair.marker().find(R"("version":"0","state":"applying")") != std::string::npos);
    CHECK_FALSE(can_be_mended(pair.relay->options().state_dir, pair.image()));
    pair.fill();
    CHECK(bytes_of(pair.image()) == pair.whole);
    CHECK(pair.marker().find(R"("version":"1","state":"committed")") != std::string::npos);
  }

  TEST_CASE("a shard is not made again under an engine that reads; the start is tried again") {
    Pair pair;
    fs::resize_file(pair.shard(), 100);
    const File engine(::open((pair.image() / "deltarelay.lock").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644),
                      "engine");
    REQUIRE(::flock(engine.descriptor(), LOCK_SH | LOCK_NB) == 0);
    const Event held = pair.opened_again();
    REQUIRE(std::holds_alternative<ImageFailed>(held));
    CHECK(std::get<ImageFailed>(held).code == "ENGINE_READS");
    CHECK(std::get<ImageFailed>(held).retryable);
    CHECK(fs::file_size(pair.shard()) == 100);
    REQUIRE(::flock(engine.descriptor(), LOCK_UN) == 0);
    CHECK(std::holds_alternative<ImageOpened>(open_image(*pair.relay, never)));
    CHECK(fs::file_size(pair.shard()) == pair.whole.size());
  }

  TEST_CASE("another checkpoint that was put in the place of a relay's image is not touched") {
    Pair pair;
    fs::remove(pair.shard());
    const std::string other = shard_header(R"({"z":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})") + "short";
    REQUIRE(
        replace_file(FileOps::real(), pair.image() / "other.safetensors", std::as_bytes(std::span(other))).has_value());
    const Event event = pair.opened_again();
    REQUIRE(std::holds_alternative<ImageFailed>(event));
    CHECK(std::get<ImageFailed>(event).text.find("other.safetensors") != std::string::npos);
    CHECK_FALSE(fs::exists(pair.shard()));
  }

  TEST_CASE("a root's shard is never made again: the root stops and names it") {
    Pair pair;
    const fs::path shard = pair.mesh.directory.path / "root" / "image" / "model.safetensors";
    pair.root.reset();
    fs::resize_file(shard, 200);
    auto again = pair.mesh.open("root", true);
    const Event event = open_image(*again, never);
    REQUIRE(std::holds_alternative<ImageFailed>(event));
    CHECK(std::get<ImageFailed>(event).text.find("model.safetensors") != std::string::npos);
    CHECK(fs::file_size(shard) == 200);
    CHECK_FALSE(can_be_mended(again->options().state_dir, again->options().image_dir));
  }
}
