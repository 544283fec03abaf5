// The block rule: what the applier writes, refuses and leaves alone.
#include "relay/store/applier.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cstring>
#include <fstream>

#include "tests/relay/store/sample_image.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::testing;

namespace {

/// An image, its base table and one worker.
struct Bench {
  Bench() {
    write_sample(directory.path / "image");
    auto opened = Image::open(directory.path / "image", block_bytes);
    REQUIRE(opened.has_value());
    image = std::move(*opened);
    base = *hash_image(*image, 2, std::atomic<bool>(false));
    auto made = ApplyWorker::open(slot(), *image);
    REQUIRE(made.has_value());
    worker = std::move(*made);
  }
  [[nodiscard]] std::filesystem::path slot() const { return directory.path / "slot-0"; }

  /// A FRAME that makes `next` out of what the block holds now, or out of nothing.
  codec::RecordPtr frame(std::uint64_t ordinal, const std::vector<std::byte>& next, bool with_base) const {
    const auto old = content_of(*image, ordinal);
    codec::BlockInput input;
    input.id = image->layout()->block_at(ordinal);
    input.dtype = image->layout()->tensor(input.id.tensor).dtype;
    if (with_base) input.base = old;
    input.next = next;
    std::vector<codec::EncodedFrame> frames;
    codec::FrameEncoder().encode(std::span(&input, 1), frames);
    REQUIRE(frames.size() == 1);
    const auto view = codec::FrameView::parse(frames[0].payload);
    REQUIRE(view.has_value());
    REQUIRE(codec::needs_base(view->entries.at(0).encoding) == with_base);
    codec::RecordHeader header;
    header.type = codec::RecordType::frame;
    return codec::seal_record(header, frames[0].payload, nullptr);
  }
  void put(std::uint64_t ordinal, const std::vector<std::byte>& content) const {
    REQUIRE(image->write_block(image->layout()->block_at(ordinal), content).has_value());
  }

  TemporaryDirectory directory;
  std::unique_ptr<Image> image;
  std::vector<codec::Digest> base;
  std::unique_ptr<ApplyWorker> worker;
};

std::vector<std::byte> changed(std::vector<std::byte> content) {
  content[content.size() / 2] ^= std::byte{1};
  return content;
}

}  // namespace

TEST_SUITE("relay/store/applier") {
TEST_CASE("the block rule: target is done, base is applied, anything else needs repair unless no base is needed") {
  enum class Holds { base, target, other };
  struct Row { Holds holds; bool with_base; std::uint64_t applied, already, repair; };
  for (const Row row : {Row{Holds::base, true, 1, 0, 0}, Row{Holds::base, false, 1, 0, 0}, Row{Holds::target, true, 0, 1, 0},
                        Row{Holds::target, false, 0, 1, 0}, Row{Holds::other, true, 0, 0, 1}, Row{Holds::other, false, 1, 0, 0}}) {
    Bench bench;
    const auto next = changed(content_of(*bench.image, 1));
    const auto frame = bench.frame(1, next, row.with_base);
    const std::vector<std::byte> other(next.size(), std::byte{0x77});
    if (row.holds == Holds::target) bench.put(1, next);
    if (row.holds == Holds::other) bench.put(1, other);
    DigestTable table(bench.base);
    const auto outcome = bench.worker->apply(*frame, table);
    CHECK_FALSE(outcome.error);
    CHECK(outcome.applied == row.applied);
    CHECK(outcome.already == row.already);
    CHECK(outcome.needs_repair.size() == row.repair);
    CHECK(content_of(*bench.image, 1) == (row.repair != 0 ? other : next));
    CHECK(table.target(1) == codec::digest_of(codec::Bytes(next)));
    const auto again = bench.worker->apply(*frame, table);
    CHECK(again.already == 1 - row.repair);
  }
}

TEST_CASE("the short last block and a tensor of five bytes are applied like any other") {
  Bench bench;
  DigestTable table(bench.base);
  for (const std::uint64_t ordinal : {4, 5}) {
    const auto next = changed(content_of(*bench.image, ordinal));
    CHECK(bench.worker->apply(*bench.frame(ordinal, next, false), table).applied == 1);
    CHECK(content_of(*bench.image, ordinal) == next);
  }
  CHECK(table.changed() == std::vector<std::uint64_t>{4, 5});
  CHECK(*hash_image(*bench.image, 2, std::atomic<bool>(false)) == table.fold());
}

TEST_CASE("a frame whose content is not what it promises never touches the image") {
  Bench bench;
  DigestTable table(bench.base);
  const auto before = content_of(*bench.image, 2);
  const auto frame = bench.frame(2, changed(before), true);
  auto payload = std::vector<std::byte>(frame->payload().begin(), frame->payload().end());
  for (std::size_t i = 0; i < payload.size(); ++i) {
    auto damaged = payload;
    damaged[i] ^= std::byte{0x10};
    DigestTable own(bench.base);
    const auto outcome = bench.worker->apply(*codec::seal_record(frame->header, damaged, nullptr), own);
    CHECK(outcome.applied == 0);
    CHECK(content_of(*bench.image, 2) == before);
  }
}

TEST_CASE("two frames that want different content of one block contradict each other") {
  Bench bench;
  DigestTable table(bench.base);
  const auto before = content_of(*bench.image, 0);
  const auto one = bench.frame(0, changed(before), true);
  const auto two = bench.frame(0, std::vector<std::byte>(before.size(), std::byte{3}), false);
  CHECK(bench.worker->apply(*one, table).applied == 1);
  CHECK(bench.worker->apply(*two, table).error);
  CHECK(content_of(*bench.image, 0) == changed(before));
}

TEST_CASE("block sync writes over anything, but only what the manifest accepts") {
  Bench bench;
  const auto next = changed(content_of(*bench.image, 3));
  const auto frame = bench.frame(3, next, false);
  bench.put(3, std::vector<std::byte>(next.size(), std::byte{9}));
  auto accepted = bench.base;
  CHECK(bench.worker->apply_sync(frame->payload(), accepted).needs_repair == std::vector<std::uint64_t>{3});
  accepted[3] = codec::digest_of(codec::Bytes(next));
  CHECK(bench.worker->apply_sync(frame->payload(), accepted).applied == 1);
  CHECK(content_of(*bench.image, 3) == next);
}

TEST_CASE("a copy that a kill interrupted is finished from its slot, once, and a damaged slot is left alone") {
  Bench bench;
  DigestTable table(bench.base);
  const auto before = content_of(*bench.image, 1), next = changed(before);
  REQUIRE(bench.worker->apply(*bench.frame(1, next, true), table).applied == 1);
  bench.worker.reset();
  // As the process leaves it when it dies during the copy: the slot says so, the block is half old and half new.
  std::fstream slot(bench.slot(), std::ios::in | std::ios::out | std::ios::binary);
  slot.put(1).flush();
  auto torn = before;
  std::fill_n(torn.begin(), 100, std::byte{0});
  bench.put(1, torn);
  SUBCASE("whole") {
    CHECK(*recover_slot(bench.slot(), *bench.image));
    CHECK(content_of(*bench.image, 1) == next);
    CHECK(ApplyWorker::open(bench.slot(), *bench.image).has_value());
    CHECK_FALSE(*recover_slot(bench.slot(), *bench.image));
  }
  SUBCASE("an engine reads") {
    const auto lock = bench.directory.path / "image" / "deltarelay.lock";
    const File engine(::open(lock.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644), lock);
    REQUIRE(::flock(engine.descriptor(), LOCK_SH | LOCK_NB) == 0);
    CHECK(recover_slot(bench.slot(), *bench.image).error().code == store_errc::engine_reads);
    CHECK(content_of(*bench.image, 1) == torn);
    REQUIRE(::flock(engine.descriptor(), LOCK_UN) == 0);
    CHECK(*recover_slot(bench.slot(), *bench.image));
    CHECK(content_of(*bench.image, 1) == next);
  }
  SUBCASE("damaged content") {
    slot.seekp(4096 + 5);
    slot.put('?').flush();
    CHECK_FALSE(*recover_slot(bench.slot(), *bench.image));
    CHECK(content_of(*bench.image, 1) == torn);
  }
  SUBCASE("never armed") {
    slot.seekp(0);
    slot.put(0).flush();
    CHECK_FALSE(*recover_slot(bench.slot(), *bench.image));
    CHECK(content_of(*bench.image, 1) == torn);
  }
}

TEST_CASE("a shard cut short during an apply is an error with its name, not the end of the process") {
  Bench bench;
  DigestTable table(bench.base);
  const auto frame = bench.frame(3, changed(content_of(*bench.image, 3)), true);
  std::filesystem::resize_file(bench.directory.path / "image" / "model.safetensors", 10);
  const auto outcome = bench.worker->apply(*frame, table);
  REQUIRE(outcome.error);
  CHECK(outcome.error->code == store_errc::replaced);
  CHECK(outcome.error->path.ends_with("model.safetensors"));
}
}
