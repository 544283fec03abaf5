// The ledger: durable steps, and what is left of it after a crash.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <fstream>

#include "relay/store/ledger.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;

namespace {

struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "deltarelay-ledger-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

/// Fails the n-th call that changes anything, and all after it: a crash at that point.
class CrashingOps final : public FileOps {
 public:
  explicit CrashingOps(int calls) : left_(calls) {}
  StoreResult<void> write_at(const File& f, std::uint64_t at, codec::Bytes data) override {
    if (!alive()) {
      // What a crash leaves of a write: its first half.
      (void)FileOps::write_at(f, at, data.first(data.size() / 2));
      return system_error(EIO, "write", f.path().string());
    }
    return FileOps::write_at(f, at, data);
  }
  StoreResult<void> sync(const File& f) override { return alive() ? FileOps::sync(f) : dead(); }
  StoreResult<void> rename(const std::filesystem::path& a, const std::filesystem::path& b) override {
    return alive() ? FileOps::rename(a, b) : dead();
  }
  StoreResult<void> sync_directory(const std::filesystem::path& d) override { return alive() ? FileOps::sync_directory(d) : dead(); }

 private:
  bool alive() { return left_-- > 0; }
  static StoreResult<void> dead() { return system_error(EIO, "crash", ""); }
  int left_;
};

LedgerRecord sample(std::uint64_t version) {
  LedgerRecord record;
  record.node = "hel-01";
  record.boot_count = 3;
  record.epoch = codec::Epoch{14};
  record.committed = codec::Version{version};
  record.highest_used = codec::Version{version + 1};
  record.kernel_boot_id = kernel_boot_id();
  record.end_record.assign(200, std::byte{7});
  record.manifest = RootManifest{codec::Version{version + 1}, codec::Version{version}, ManifestState::commit};
  record.history.push_back({codec::Version{version}, codec::Version{version - 1}, 1, 2, 3, 4, 5, 6, "committed", {"bom-07"}});
  return record;
}

}  // namespace

TEST_SUITE("relay/store/ledger") {
TEST_CASE("a ledger that is not there is no error, and one that was saved comes back whole") {
  TemporaryDirectory directory;
  Ledger ledger(directory.path);
  CHECK_FALSE(ledger.load()->has_value());
  REQUIRE(ledger.save(sample(5)).has_value());
  CHECK(**ledger.load() == sample(5));
}

TEST_CASE("a crash at any point of saving leaves the old record or the new one") {
  for (int calls = 0; calls < 5; ++calls) {
    TemporaryDirectory directory;
    Ledger before(directory.path);
    REQUIRE(before.save(sample(5)).has_value());
    CrashingOps ops(calls);
    const bool saved = Ledger(directory.path, ops).save(sample(6)).has_value();
    CHECK(saved == (calls == 4));
    const auto now = before.load();
    REQUIRE(now.has_value());
    CHECK((**now == sample(5) || (**now == sample(6) && calls >= 3)));
  }
}

TEST_CASE("a flipped bit or a missing byte anywhere is refused by name") {
  TemporaryDirectory directory;
  Ledger ledger(directory.path);
  REQUIRE(ledger.save(sample(5)).has_value());
  auto& ops = FileOps::real();
  const auto content = *read_file(ops, directory.path / "ledger", 1 << 20);
  for (std::size_t i = 0; i < content.size(); ++i) {
    auto damaged = content;
    damaged[i] ^= std::byte{1};
    auto file = ops.open(directory.path / "ledger", OpenMode::create);
    REQUIRE(ops.write_at(*file, 0, damaged).has_value());
    CHECK(ledger.load().error().code == store_errc::corrupt);
    REQUIRE(ops.write_at(*file, 0, content).has_value());
    REQUIRE(ops.truncate(*file, i).has_value());
    CHECK(ledger.load().error().code == store_errc::corrupt);
  }
}

TEST_CASE("a digest table is taken only with the digest that the ledger has for it") {
  TemporaryDirectory directory;
  Ledger ledger(directory.path);
  std::vector<codec::Digest> table(9);
  table[4].bytes[0] = std::byte{1};
  const auto digest = codec::digest_of(std::span<const codec::Digest>(table));
  REQUIRE(ledger.save_digests(codec::Version{3}, table).has_value());
  CHECK(*ledger.load_digests(codec::Version{3}, digest) == table);
  CHECK(ledger.load_digests(codec::Version{3}, codec::Digest{}).error().code == store_errc::corrupt);
  REQUIRE(ledger.remove_other_digests(codec::Version{4}).has_value());
  CHECK(ledger.load_digests(codec::Version{3}, digest).error().code == boost::system::errc::no_such_file_or_directory);
}
}
