// Images: opened, locked, and damaged behind the daemon's back.
#include "relay/store/image.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "relay/store/applier.hpp"
#include "relay/store/engine_lock.hpp"
#include "relay/store/ledger.hpp"
#include "relay/store/verify.hpp"
#include "tests/relay/store/sample_image.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::testing;
namespace fs = std::filesystem;

namespace {

boost::system::error_code refusal(const fs::path& directory) {
  auto image = Image::open(directory, block_bytes);
  REQUIRE_FALSE(image.has_value());
  return image.error().code;
}

codec::FilePayload companion(std::string name) {
  codec::FilePayload out;
  out.name = std::move(name);
  out.content.assign(3, std::byte{'x'});
  return out;
}

}  // namespace

TEST_SUITE("relay/store/image") {
TEST_CASE("blocks at an odd file offset are written through to the file and nowhere else") {
  TemporaryDirectory dir;
  const auto path = write_sample(dir.path);
  const auto before = *read_file(FileOps::real(), path, 1 << 20);
  {
    auto image = Image::open(dir.path, block_bytes);
    REQUIRE(image.has_value());
    CHECK((*image)->layout()->block_count() == 6);
    const auto id = (*image)->layout()->block_at(4);
    const std::vector<std::byte> next((*image)->layout()->size_of(id), std::byte{0xee});
    REQUIRE((*image)->write_block(id, next).has_value());
    CHECK(content_of(**image, 4) == next);
    REQUIRE((*image)->sync().has_value());
  }
  auto expected = before;
  const std::size_t at = sample_header().size() + 4 * block_bytes;
  CHECK(at % 2 == 1);
  std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(at), 10, std::byte{0xee});
  CHECK(*read_file(FileOps::real(), path, 1 << 20) == expected);
}

TEST_CASE("a second open is refused, also by another path, and the lock dies with its holder") {
  TemporaryDirectory dir;
  write_sample(dir.path / "real");
  fs::create_directory_symlink(dir.path / "real", dir.path / "alias");
  {
    auto first = Image::open(dir.path / "real", block_bytes);
    REQUIRE(first.has_value());
    CHECK(refusal(dir.path / "real") == store_errc::already_locked);
    CHECK(refusal(dir.path / "alias") == store_errc::already_locked);
  }
  std::ofstream(dir.path / "real" / ".deltarelay.lock") << ::getpid();
  CHECK(Image::open(dir.path / "real", block_bytes).has_value());
}

TEST_CASE("a shard that is not ours alone is refused by name and left untouched") {
  TemporaryDirectory dir;
  const auto path = write_sample(dir.path / "image");
  SUBCASE("hard link") {
    fs::create_hard_link(path, dir.path / "golden");
    auto image = Image::open(dir.path / "image", block_bytes);
    REQUIRE_FALSE(image.has_value());
    CHECK(image.error().code == store_errc::hard_linked);
    CHECK(image.error().text().find("model.safetensors") != std::string::npos);
  }
  SUBCASE("symbolic link") {
    fs::rename(path, dir.path / "elsewhere");
    fs::create_symlink(dir.path / "elsewhere", path);
    CHECK_FALSE(Image::open(dir.path / "image", block_bytes).has_value());
  }
  SUBCASE("read-only") {
    fs::permissions(path, fs::perms::owner_read | fs::perms::group_read);
    auto image = Image::open(dir.path / "image", block_bytes);
    // Root may write whatever the mode is; anybody else is refused and the mode stays as it is.
    if (::geteuid() != 0) {
      REQUIRE_FALSE(image.has_value());
      CHECK(image.error().code == store_errc::read_only);
    }
    CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::group_read));
  }
}

TEST_CASE("a shard replaced or cut short under the mapping is noticed, and reading what is gone is an error") {
  TemporaryDirectory dir;
  const auto path = write_sample(dir.path);
  auto image = Image::open(dir.path, block_bytes);
  REQUIRE(image.has_value());
  CHECK((*image)->check_identity().has_value());
  SUBCASE("replaced by rename") {
    fs::copy_file(path, dir.path / "new");
    fs::rename(dir.path / "new", path);
    CHECK((*image)->check_identity().error().code == store_errc::replaced);
  }
  SUBCASE("linked") {
    fs::create_hard_link(path, dir.path / "second");
    CHECK((*image)->check_identity().error().code == store_errc::hard_linked);
  }
  SUBCASE("truncated") {
    fs::resize_file(path, 1);
    CHECK((*image)->check_identity().error().code == store_errc::replaced);
    std::vector<std::byte> out(block_bytes);
    const auto id = (*image)->layout()->block_at(3);
    const auto got = (*image)->read_block(id, out);
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().code == store_errc::replaced);
    CHECK(got.error().path == path.string());
    CHECK(got.error().offset == sample_header().size() + 3 * block_bytes);
    CHECK((*image)->write_block(id, out).error().code == store_errc::replaced);
    CHECK(hash_image(**image, 2, std::atomic<bool>(false)).error().code == store_errc::replaced);
  }
}

TEST_CASE("bytes beyond 4 GiB are where the header says") {
  TemporaryDirectory dir;
  constexpr std::uint64_t bytes = (std::uint64_t{1} << 32) + 2 * block_bytes;
  const std::string header = shard_header(R"({"big":{"dtype":"U8","shape":[)" + std::to_string(bytes) +
                                          R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}");
  const auto path = dir.path / "model.safetensors";
  std::ofstream(path, std::ios::binary) << header;
  fs::resize_file(path, header.size() + bytes);
  auto image = Image::open(dir.path, codec::block_bytes_max);
  if (!image && image.error().code == boost::system::errc::no_space_on_device) return;  // a small disk: nothing to see
  REQUIRE(image.has_value());
  const auto last = (*image)->layout()->block_at((*image)->layout()->block_count() - 1);
  CHECK((*image)->layout()->offset_of(last) == std::uint64_t{1} << 32);
  const std::vector<std::byte> mark(2 * block_bytes, std::byte{0x5a});
  REQUIRE((*image)->write_block(last, mark).has_value());
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(header.size() + (std::uint64_t{1} << 32) - 1));
  CHECK(in.get() == 0);
  CHECK(in.get() == 0x5a);
}

TEST_CASE("an image is made from the root's description, of zeros, and not over other files") {
  TemporaryDirectory dir;
  const std::string header = sample_header();
  codec::LayoutPayload layout;
  codec::ShardSkeleton shard;
  shard.name = "model.safetensors";
  shard.file_bytes = header.size() + tensor_a_bytes + 5;
  shard.header.assign(std::as_bytes(std::span(header)).begin(), std::as_bytes(std::span(header)).end());
  layout.shards.push_back(shard);
  REQUIRE(Image::create(dir.path / "new", layout).has_value());
  CHECK(Image::create(dir.path / "new", layout).error().code == store_errc::not_empty);
  auto image = Image::open(dir.path / "new", block_bytes);
  REQUIRE(image.has_value());
  CHECK(content_of(**image, 0) == std::vector<std::byte>(block_bytes));
  CHECK((fs::status(dir.path / "new" / "model.safetensors").permissions() & fs::perms::others_read) != fs::perms::none);
  layout.shards[0].name = "../escape.safetensors";
  CHECK_FALSE(Image::create(dir.path / "other", layout).has_value());
  CHECK_FALSE(fs::exists(dir.path / "escape.safetensors"));
}

TEST_CASE("files that engines read keep their permissions, and new ones can be read by all") {
  TemporaryDirectory dir;
  write_sample(dir.path);
  std::ofstream(dir.path / "config.json") << "old";
  const auto group_too = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read;
  fs::permissions(dir.path / "config.json", group_too);
  auto image = Image::open(dir.path, block_bytes);
  REQUIRE(image.has_value());
  for (const char* name : {"config.json", "tokenizer.json"}) {
    codec::FilePayload file;
    file.name = name;
    REQUIRE((*image)->write_companion(file).has_value());
  }
  REQUIRE((*image)->write_marker({}).has_value());
  CHECK(fs::status(dir.path / "config.json").permissions() == group_too);
  const auto all_read = group_too | fs::perms::others_read;
  CHECK(fs::status(dir.path / "tokenizer.json").permissions() == all_read);
  CHECK(fs::status(dir.path / "deltarelay.json").permissions() == all_read);
}

TEST_CASE("companion files are replaced whole, and names that are ours or lead out are refused") {
  TemporaryDirectory dir;
  write_sample(dir.path / "image");
  auto image = Image::open(dir.path / "image", block_bytes);
  REQUIRE(image.has_value());
  REQUIRE((*image)->write_companion(companion("config.json")).has_value());
  CHECK(read_file(FileOps::real(), dir.path / "image" / "config.json", 10)->size() == 3);
  for (const char* name : {"../config.json", "deltarelay.json", "deltarelay.lock", "model.safetensors", ".deltarelay.lock", ""})
    CHECK_FALSE((*image)->write_companion(companion(name)).has_value());
  REQUIRE((*image)->write_marker({.version = codec::Version{4}, .applying = true, .target = codec::Version{5}, .digest = {},
                                  .changed_tensors = {"a\"b"}}).has_value());
  const auto marker = *read_file(FileOps::real(), dir.path / "image" / "deltarelay.json", 1 << 16);
  const std::string text(reinterpret_cast<const char*>(marker.data()), marker.size());
  CHECK(text.find(R"("state":"applying","target":"5")") != std::string::npos);
  CHECK(text.find(R"(["a\"b"])") != std::string::npos);
}

TEST_CASE("opening an image whose shards have their space changes nothing about the files") {
  TemporaryDirectory dir;
  const auto path = write_sample(dir.path);
  REQUIRE(Image::open(dir.path, block_bytes).has_value());  // space is reserved, if it was not
  const fs::file_time_type long_ago{};
  fs::last_write_time(path, long_ago);
  REQUIRE(Image::open(dir.path, block_bytes).has_value());
  CHECK(fs::last_write_time(path) == long_ago);
}

TEST_CASE("an engine that reads is waited for, and none begins while we hold it off") {
  TemporaryDirectory dir;
  write_sample(dir.path);
  auto image = Image::open(dir.path, block_bytes);
  REQUIRE(image.has_value());
  REQUIRE(*(*image)->try_hold_engines());
  const File engine(::open((dir.path / "deltarelay.lock").c_str(), O_RDONLY | O_CLOEXEC), "engine");
  CHECK(::flock(engine.descriptor(), LOCK_SH | LOCK_NB) != 0);
  (*image)->release_engines();
  REQUIRE(::flock(engine.descriptor(), LOCK_SH | LOCK_NB) == 0);
  CHECK_FALSE(*(*image)->try_hold_engines());
  CHECK(engines_reading(dir.path).starts_with("pid " + std::to_string(::getpid()) + " ("));
  REQUIRE(::flock(engine.descriptor(), LOCK_UN) == 0);
  CHECK(engines_reading(dir.path).empty());
  CHECK(*(*image)->try_hold_engines());
}

TEST_CASE("verify names the first block that is not what the ledger states") {
  TemporaryDirectory dir;
  const auto path = write_sample(dir.path / "image");
  fs::create_directories(dir.path / "state");
  std::vector<codec::Digest> table;
  {
    auto image = Image::open(dir.path / "image", block_bytes);
    REQUIRE(image.has_value());
    table = *hash_image(**image, 1, std::atomic<bool>(false));
  }
  Ledger ledger(dir.path / "state");
  LedgerRecord record;
  record.committed = codec::Version{3};
  record.image = codec::digest_of(std::span<const codec::Digest>(table));
  REQUIRE(ledger.save_digests(record.committed, table).has_value());
  REQUIRE(ledger.save(record).has_value());
  auto report = verify_image(dir.path / "image", dir.path / "state", true, block_bytes);
  REQUIRE(report.has_value());
  CHECK(report->ok());
  CHECK(report->computed == record.image);
  std::vector<std::uint64_t> watched;
  const VerifyWatch give_up_after_two = [&](std::uint64_t checked_bytes, std::uint64_t total_bytes) {
    CHECK(total_bytes == report->bytes);
    watched.push_back(checked_bytes);
    return watched.size() < 2;
  };
  const auto given_up = verify_image(dir.path / "image", dir.path / "state", true, block_bytes, give_up_after_two);
  REQUIRE(given_up.has_error());
  CHECK(given_up.error().code == boost::system::errc::operation_canceled);
  CHECK(watched == std::vector<std::uint64_t>{block_bytes, 2 * block_bytes});
  // Cut short between the headers and the data.
  const auto whole = fs::file_size(path);
  fs::copy_file(path, dir.path / "whole");
  const VerifyWatch cut_after_one = [&](std::uint64_t, std::uint64_t) {
    fs::resize_file(path, whole / 2);
    return true;
  };
  const auto cut = verify_image(dir.path / "image", dir.path / "state", true, block_bytes, cut_after_one);
  REQUIRE(cut.has_error());
  CHECK(cut.error().path == path.string());
  fs::copy_file(dir.path / "whole", path, fs::copy_options::overwrite_existing);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(sample_header().size() + 2 * block_bytes + 17));
  file.put('!').flush();
  report = verify_image(dir.path / "image", dir.path / "state", true, block_bytes);
  REQUIRE(report.has_value());
  REQUIRE(report->differing.size() == 1);
  CHECK(report->findings.front() == "1 of 6 blocks differ from version 3, the first is block 2 of \"a\"");
  CHECK(verify_image(dir.path / "image", dir.path / "state", false, block_bytes)->ok());
  CHECK_FALSE(verify_image(dir.path / "image", dir.path / "image", false, block_bytes)->ok());
}
}
