// The log: appended, read, evicted, torn and damaged.
#include <doctest/doctest.h>
#include <stdlib.h>

#include "relay/store/log.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;

namespace {

codec::RecordPtr record(std::uint64_t sequence) {
  codec::RecordHeader header;
  header.type = codec::RecordType::frame;
  header.version = codec::Version{7};
  header.sequence = codec::Sequence{sequence};
  const std::vector<std::byte> payload(5 + sequence, static_cast<std::byte>(sequence));
  return codec::seal_record(header, payload, nullptr);
}

codec::RecordPtr read(RefitLog& log, std::uint64_t sequence) {
  auto got = log.read(codec::Version{7}, codec::StripeId{0}, codec::Sequence{sequence});
  return got ? *got : nullptr;
}

struct Directory {
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "deltarelay-log-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = std::filesystem::path(name) / "log";
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { std::filesystem::remove_all(path.parent_path()); }
  /// What a process that starts now would find.
  [[nodiscard]] std::filesystem::path copy() const {
    const auto to = path.parent_path() / "copy";
    std::filesystem::remove_all(to);
    std::filesystem::copy(path, to);
    return to;
  }
  std::filesystem::path path;
};

/// A disk that takes half of each write once it is full, and whose fsync may fail.
struct FullDisk final : FileOps {
  StoreResult<void> write_at(const File& file, std::uint64_t offset, codec::Bytes data) override {
    if (!full) return FileOps::write_at(file, offset, data);
    (void)FileOps::write_at(file, offset, data.first(data.size() / 2));
    return system_error(ENOSPC, "write", file.path().string(), offset);
  }
  StoreResult<void> sync(const File& file) override {
    return sync_fails ? system_error(EIO, "sync", file.path().string()) : FileOps::sync(file);
  }
  bool full = false, sync_fails = false;
};

void fill(RefitLog& log, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const codec::RecordPtr next = record(i);
    REQUIRE(log.publish(next).has_value());
    REQUIRE(log.write(next).has_value());
  }
}

}  // namespace

TEST_SUITE("relay/store/log") {
TEST_CASE("a tail torn at any byte costs the torn record only, and the log goes on from there") {
  std::string directory = (std::filesystem::temp_directory_path() / "deltarelay-log-XXXXXX").string();
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  const auto first = record(0), second = record(1);
  const std::size_t whole = first->bytes.size() + second->bytes.size();
  for (std::size_t keep = first->bytes.size(); keep <= whole; ++keep) {
    std::filesystem::remove_all(directory);
    {
      auto log = RefitLog::open(directory, {.cache_bytes_max = 0});
      REQUIRE(log.has_value());
      for (const auto& r : {first, second}) {
        REQUIRE((*log)->publish(r).has_value());
        CHECK(read(**log, codec::raw(r->header.sequence)) == r);
        REQUIRE((*log)->write(r).has_value());
      }
      REQUIRE((*log)->sync().has_value());
      CHECK(read(**log, 1)->bytes == second->bytes);
    }
    std::filesystem::resize_file(directory + "/v7-s0-0.seg", keep);
    auto log = RefitLog::open(directory, {});
    REQUIRE(log.has_value());
    CHECK(read(**log, 0)->bytes == first->bytes);
    CHECK((read(**log, 1) != nullptr) == (keep == whole));
    CHECK((*log)->cuts().size() == (keep == whole || keep == first->bytes.size() ? 0 : 1));
    CHECK((*log)->publish(record(keep == whole ? 2 : 1)).has_value());
  }
  std::filesystem::remove_all(directory);
}

TEST_CASE("damage before the tail ends the stripe there, and says that it is no torn tail") {
  const Directory directory;
  std::uint64_t whole = 0;
  {
    auto log = RefitLog::open(directory.path, {});
    fill(**log, 4);
    whole = (*log)->bytes();
  }
  const auto path = directory.path / "v7-s0-0.seg";
  const auto content = *read_file(FileOps::real(), path, 1 << 20);
  const std::size_t first_bytes = record(0)->bytes.size(), second_end = first_bytes + record(1)->bytes.size();
  for (std::size_t i = first_bytes; i < second_end; ++i) {
    auto damaged = content;
    damaged[i] ^= std::byte{4};
    auto file = FileOps::real().open(path, OpenMode::create);
    REQUIRE(FileOps::real().write_at(*file, 0, damaged).has_value());
    auto log = RefitLog::open(directory.path, {});
    REQUIRE(log.has_value());
    CHECK(read(**log, 0)->bytes == record(0)->bytes);
    if (read(**log, 1) != nullptr) {
      // A flip that the payload's SHA-256 does not cover: the header's signature does, which the daemon checks.
      CHECK(i < first_bytes + codec::record_header_bytes);
      continue;
    }
    REQUIRE((*log)->cuts().size() == 1);
    CHECK((*log)->cuts()[0].offset == first_bytes);
    CHECK((*log)->bytes() == first_bytes);
    // A damaged length may point past the end, which looks like a torn record; everywhere else damage is told apart.
    if (i >= first_bytes + codec::record_header_bytes) CHECK_FALSE((*log)->cuts()[0].torn_tail);
  }
  CHECK(whole == content.size());
}

TEST_CASE("a full disk leaves the log well-formed, the record readable, and the write repeatable") {
  const Directory directory;
  FullDisk disk;
  auto log = RefitLog::open(directory.path, {}, disk);
  fill(**log, 2);
  const codec::RecordPtr third = record(2);
  REQUIRE((*log)->publish(third).has_value());
  disk.full = true;
  CHECK((*log)->write(third).error().code == boost::system::errc::no_space_on_device);
  CHECK(read(**log, 2)->bytes == record(2)->bytes);
  CHECK((*log)->unwritten_bytes() == record(2)->bytes.size());
  CHECK(read(**RefitLog::open(directory.copy(), {}), 1)->bytes == record(1)->bytes);
  disk.full = false;
  REQUIRE((*log)->write(third).has_value());
  CHECK((*log)->unwritten_bytes() == 0);
  REQUIRE((*log)->sync().has_value());
  auto again = RefitLog::open(directory.copy(), {});
  CHECK((*again)->cuts().empty());
  CHECK(read(**again, 2)->bytes == record(2)->bytes);
}

TEST_CASE("an fsync that failed once is never taken back") {
  const Directory directory;
  FullDisk disk;
  auto log = RefitLog::open(directory.path, {}, disk);
  fill(**log, 1);
  disk.sync_fails = true;
  CHECK_FALSE((*log)->sync().has_value());
  disk.sync_fails = false;
  CHECK_FALSE((*log)->sync().has_value());
  REQUIRE((*log)->remove((*log)->forget(codec::Version{7})).has_value());
  CHECK((*log)->sync().has_value());
}

TEST_CASE("segments roll over, are read back in order, and go with their refit") {
  const Directory directory;
  {
    auto log = RefitLog::open(directory.path, {.segment_bytes_max = 400, .cache_bytes_max = 0});
    fill(**log, 9);
  }
  auto log = RefitLog::open(directory.path, {.segment_bytes_max = 400, .cache_bytes_max = 0});
  CHECK((*log)->cuts().empty());
  std::uint64_t next = 0;
  REQUIRE((*log)->for_each_recovered([&](const codec::RecordPtr& r) { CHECK(codec::raw(r->header.sequence) == next++); }).has_value());
  CHECK(next == 9);
  CHECK((*log)->to_drop((*log)->bytes(), codec::Version{8}).empty());
  CHECK((*log)->to_drop(0, codec::Version{7}).empty());
  CHECK((*log)->to_drop(0, codec::Version{8}) == std::vector{codec::Version{7}});
  REQUIRE((*log)->remove((*log)->forget(codec::Version{7})).has_value());
  CHECK((*log)->bytes() == 0);
  CHECK(std::filesystem::is_empty(directory.path));
  CHECK((*log)->read(codec::Version{7}, codec::StripeId{0}, codec::Sequence{3}).error().code == store_errc::not_in_log);
}

TEST_CASE("another refit may take the number of one that was forgotten, whose late records are not written into it") {
  const Directory directory;
  auto log = RefitLog::open(directory.path, {.cache_bytes_max = 0});
  fill(**log, 2);
  const codec::RecordPtr late = record(2), other = record(0);
  REQUIRE((*log)->publish(late).has_value());
  const auto forgotten = (*log)->forget(codec::Version{7});
  REQUIRE((*log)->publish(other).has_value());
  REQUIRE((*log)->write(late).has_value());  // the log writer had it in its queue
  REQUIRE((*log)->write(record(0)).has_value());
  CHECK((*log)->unwritten_bytes() == other->bytes.size());
  REQUIRE((*log)->remove(forgotten).has_value());
  REQUIRE((*log)->write(other).has_value());
  CHECK((*log)->unwritten_bytes() == 0);
  CHECK(read(**log, 0)->bytes == other->bytes);
  CHECK(read(**log, 1) == nullptr);
  auto again = RefitLog::open(directory.copy(), {});
  CHECK((*again)->bytes() == other->bytes.size());
}

TEST_CASE("a stripe whose first records are gone is not used, and is received again from the start") {
  const Directory directory;
  {
    auto log = RefitLog::open(directory.path, {.segment_bytes_max = 400, .cache_bytes_max = 0});
    fill(**log, 9);
  }
  REQUIRE(std::filesystem::remove(directory.path / "v7-s0-0.seg"));
  auto log = RefitLog::open(directory.path, {});
  REQUIRE(log.has_value());
  REQUIRE((*log)->cuts().size() == 1);
  CHECK((*log)->cuts()[0].why == "records before this segment are missing");
  CHECK_FALSE((*log)->cuts()[0].torn_tail);
  CHECK(std::filesystem::is_empty(directory.path));
  CHECK((*log)->publish(record(3)).error().code == store_errc::out_of_order);
  fill(**log, 2);
  CHECK(read(**log, 1)->bytes == record(1)->bytes);
}

TEST_CASE("a record that is not genuine ends its stripe there, wherever it is, and the log goes on from there") {
  for (std::uint64_t forged = 0; forged < 9; ++forged) {
    const Directory directory;
    {
      auto log = RefitLog::open(directory.path, {.segment_bytes_max = 400});
      fill(**log, 9);
    }
    auto log = RefitLog::open(directory.path, {}, FileOps::real(),
                              [forged](const codec::Record& r) { return codec::raw(r.header.sequence) != forged; });
    REQUIRE(log.has_value());
    REQUIRE((*log)->cuts().size() == 1);
    CHECK((*log)->cuts()[0].why == "a record that the root did not sign");
    CHECK_FALSE((*log)->cuts()[0].torn_tail);
    std::uint64_t kept = 0;
    REQUIRE((*log)->for_each_recovered([&](const codec::RecordPtr&) { ++kept; }).has_value());
    CHECK(kept == forged);
    const codec::RecordPtr next = record(forged);
    REQUIRE((*log)->publish(next).has_value());
    REQUIRE((*log)->write(next).has_value());
    CHECK(read(**RefitLog::open(directory.copy(), {}), forged)->bytes == record(forged)->bytes);
  }
}

TEST_CASE("a record that does not follow the last one is refused") {
  const Directory directory;
  auto log = RefitLog::open(directory.path, {});
  fill(**log, 1);
  CHECK((*log)->publish(record(2)).error().code == store_errc::out_of_order);
  CHECK((*log)->publish(record(0)).error().code == store_errc::out_of_order);
  CHECK((*log)->publish(record(1)).has_value());
}
}
