// Shards that were cut short or taken away: which are ours to make again, and what is in them then.
#include "relay/store/image_shape.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <fstream>
#include <functional>

#include "tests/relay/store/sample_image.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::testing;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

/// Two shards and an index: "model-1.safetensors" with "x" and "model-2.safetensors" with "y".
struct Bench {
  Bench() {
    fs::create_directories(image);
    shard("model-1.safetensors", "x", 3000, 'a');
    shard("model-2.safetensors", "y", 5000, 'b');
    std::ofstream(image / "model.safetensors.index.json")
        << R"({"weight_map":{"x":"model-1.safetensors","y":"model-2.safetensors"}})";
    std::ofstream(image / "config.json") << "{}";
    shape = *describe_files(*codec::Checkpoint::open(image, block_bytes));
  }
  void shard(const std::string& name, const std::string& tensor, std::size_t bytes, char fill) const {
    std::ofstream(image / name, std::ios::binary)
        << shard_header(R"({")" + tensor + R"(":{"dtype":"U8","shape":[)" + std::to_string(bytes) +
                        R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}")
        << std::string(bytes, fill);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(image / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] StoreResult<void> mend() const {
    ImageMarker marker;
    marker.applying = true;
    return Image::mend(image, shape, damaged_files(image, shape), marker);
  }

  TemporaryDirectory directory;
  fs::path image = directory.path / "image";
  codec::LayoutPayload shape;
};

}  // namespace

TEST_SUITE("relay/store/image_shape") {
  TEST_CASE("what is gone or cut short is named, as long as everything else is the same checkpoint") {
    struct Row {
      const char* what;
      std::function<void(const Bench&)> spoil;
      Names damaged;
    };
    const std::string one = "model-1.safetensors", two = "model-2.safetensors";
    const std::string index = "model.safetensors.index.json";
    const Row rows[] = {
        {"nothing", [](const Bench&) {}, {}},
        {"cut in the data", [&](const Bench& b) { fs::resize_file(b.image / one, 1000); }, {one}},
        {"cut in the header", [&](const Bench& b) { fs::resize_file(b.image / one, 20); }, {one}},
        {"emptied", [&](const Bench& b) { fs::resize_file(b.image / one, 0); }, {one}},
        {"removed", [&](const Bench& b) { fs::remove(b.image / two); }, {two}},
        {"both", [&](const Bench& b) { fs::remove(b.image / one), fs::resize_file(b.image / two, 99); }, {one, two}},
        {"index removed", [&](const Bench& b) { fs::remove(b.image / index); }, {index}},
        {"all removed but a small file",
         [&](const Bench& b) { fs::remove(b.image / one), fs::remove(b.image / two), fs::remove(b.image / index); },
         {one, two, index}},
        {"an unlisted shard beside",
         [&](const Bench& b) { b.shard("old.safetensors", "z", 9, 'z'), fs::remove(b.image / one); },
         {one}},
        // From here on: not ours to touch.
        {"a directory of nothing", [&](const Bench& b) { fs::remove_all(b.image), fs::create_directory(b.image); }, {}},
        {"no directory", [&](const Bench& b) { fs::remove_all(b.image); }, {}},
        {"another index",
         [&](const Bench& b) { std::ofstream(b.image / index) << R"({"weight_map":{}})", fs::remove(b.image / one); },
         {}},
        {"another shard and no index",
         [&](const Bench& b) { fs::remove(b.image / index), fs::rename(b.image / one, b.image / "new.safetensors"); },
         {}},
        {"another header", [&](const Bench& b) { b.shard(one, "w", 10, 'w'), fs::remove(b.image / two); }, {}},
        {"a link",
         [&](const Bench& b) { fs::remove(b.image / one), fs::create_symlink("nowhere", b.image / one); },
         {}},
        {"an image that is being made",
         [&](const Bench& b) { std::ofstream(b.image / ".deltarelay.creating"), fs::remove(b.image / one); },
         {}},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const Bench bench;
      row.spoil(bench);
      CHECK(damaged_files(bench.image, bench.shape) == row.damaged);
    }
  }

  TEST_CASE("mended files have their size and header again, what was left of them, and zeros where weights were") {
    const Bench bench;
    const std::string one = bench.read("model-1.safetensors"), two = bench.read("model-2.safetensors");
    const std::string index = bench.read("model.safetensors.index.json");
    fs::resize_file(bench.image / "model-1.safetensors", one.size() - 1000);
    fs::remove(bench.image / "model-2.safetensors");
    fs::remove(bench.image / "model.safetensors.index.json");
    REQUIRE(bench.mend().has_value());
    CHECK(bench.read("model-1.safetensors") == one.substr(0, one.size() - 1000) + std::string(1000, '\0'));
    CHECK(bench.read("model-2.safetensors") == two.substr(0, two.size() - 5000) + std::string(5000, '\0'));
    CHECK(bench.read("model.safetensors.index.json") == index);
    CHECK(bench.read("deltarelay.json").find(R"("version":"0","state":"applying")") != std::string::npos);
    CHECK(damaged_files(bench.image, bench.shape).empty());
    CHECK(Image::open(bench.image, block_bytes).has_value());
    CHECK((fs::status(bench.image / "model-2.safetensors").permissions() & fs::perms::others_read) != fs::perms::none);
  }

  TEST_CASE("nothing is mended under an engine that reads, nor in a file that somebody else has too") {
    const Bench bench;
    fs::resize_file(bench.image / "model-1.safetensors", 1000);
    SUBCASE("engine") {
      std::ofstream(bench.image / "deltarelay.lock").flush();
      const File engine(::open((bench.image / "deltarelay.lock").c_str(), O_RDONLY | O_CLOEXEC), "engine");
      REQUIRE(::flock(engine.descriptor(), LOCK_SH | LOCK_NB) == 0);
      CHECK(bench.mend().error().code == store_errc::engine_reads);
      CHECK_FALSE(fs::exists(bench.image / "deltarelay.json"));
    }
    SUBCASE("hard link") {
      fs::create_hard_link(bench.image / "model-1.safetensors", bench.directory.path / "golden");
      CHECK(bench.mend().error().code == store_errc::hard_linked);
    }
    CHECK(fs::file_size(bench.image / "model-1.safetensors") == 1000);
  }

  TEST_CASE("a shape is kept whole or not at all, and not written again when nothing changed") {
    const Bench bench;
    const fs::path file = bench.directory.path / "shape";
    CHECK_FALSE(load_shape(FileOps::real(), file)->has_value());
    REQUIRE(save_shape(FileOps::real(), file, bench.shape).has_value());
    CHECK(**load_shape(FileOps::real(), file) == bench.shape);
    const fs::file_time_type long_ago{};
    fs::last_write_time(file, long_ago);
    REQUIRE(save_shape(FileOps::real(), file, bench.shape).has_value());
    CHECK(fs::last_write_time(file) == long_ago);
    const auto whole = *read_file(FileOps::real(), file, codec::mib);
    for (const std::size_t place : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
      auto damaged = whole;
      damaged[place] ^= std::byte{1};
      REQUIRE(replace_file(FileOps::real(), file, damaged).has_value());
      CHECK(load_shape(FileOps::real(), file).error().code == store_errc::corrupt);
    }
    fs::resize_file(file, 3);
    CHECK(load_shape(FileOps::real(), file).error().code == store_errc::corrupt);
  }
}
