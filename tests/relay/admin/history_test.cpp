// The list of versions and its file: order, bounds, restarts, damage.
#include "relay/admin/history.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/relay/admin/admin_fixture.hpp"

using namespace deltarelay;
using namespace deltarelay::relay;
using namespace deltarelay::relay::admin;
using namespace deltarelay::relay::admin::testing;

namespace {

VersionRow sample_row(std::uint64_t version, const std::string& result = "committed") {
  VersionRow row;
  row.version = Version{version};
  row.base = Version{version - 1};
  row.at = Time{std::chrono::hours{500'000}} + std::chrono::minutes(version);
  row.dense_bytes = 140'000'000'000;
  row.payload_bytes = 1'652'000'000;
  row.changed_percent = 2.97;
  row.seconds.encode = 12.5;
  row.result = result;
  row.nodes_committed = 246;
  row.nodes_total = 248;
  row.left_out = {"hel-41", "bom-07"};
  return row;
}

std::vector<std::uint64_t> versions_of(const History& history) {
  std::vector<std::uint64_t> versions;
  for (const VersionRow& row : history.rows()) versions.push_back(codec::raw(row.version));
  return versions;
}

using Versions = std::vector<std::uint64_t>;

/// A disk whose rename fails: the last step of replacing a file.
class NoRename : public FileOps {
 public:
  StoreResult<void> rename(const std::filesystem::path&, const std::filesystem::path& to) override {
    return system_error(ENOSPC, "rename to", to.string());
  }
};

}  // namespace

TEST_SUITE("relay/admin/history") {
  TEST_CASE("rows are newest first, and a row replaces the one of its version") {
    History history;
    for (const std::uint64_t version : {5u, 7u, 6u}) history.put(sample_row(version));
    CHECK(versions_of(history) == Versions{7, 6, 5});
    history.put(sample_row(6, "aborted"));
    CHECK(versions_of(history) == Versions{7, 6, 5});
    REQUIRE(history.find(Version{6}) != nullptr);
    CHECK(history.find(Version{6})->result == "aborted");
    CHECK(history.find(Version{8}) == nullptr);
  }

  TEST_CASE("the list is bounded and forgets the oldest") {
    History history;
    for (std::uint64_t version = 1; version <= history_versions_max + 5; ++version) history.put(sample_row(version));
    CHECK(history.rows().size() == history_versions_max);
    CHECK(history.rows().front().version == Version{history_versions_max + 5});
    CHECK(history.rows().back().version == Version{6});
    history.put(sample_row(2));
    CHECK(history.find(Version{2}) == nullptr);
  }

  TEST_CASE("the file brings everything back after a restart") {
    TemporaryDirectory directory;
    const auto file = directory / "history.jsonl";
    History history;
    history.put(sample_row(7));
    history.put(sample_row(8, "aborted"));
    REQUIRE(save_history(FileOps::real(), file, history.text()).has_value());
    const auto loaded = load_history(FileOps::real(), file);
    REQUIRE(loaded.has_value());
    CHECK(loaded->lines_skipped == 0);
    CHECK(loaded->history.text() == history.text());
    const VersionRow* row = loaded->history.find(Version{7});
    REQUIRE(row != nullptr);
    CHECK(row->at == sample_row(7).at);
    CHECK(row->left_out == std::vector<std::string>{"hel-41", "bom-07"});
    CHECK(row->changed_percent == 2.97);
    CHECK(row->seconds.encode == 12.5);
  }

  TEST_CASE("a missing file is an empty history, and an unreadable one is an error") {
    TemporaryDirectory directory;
    const auto loaded = load_history(FileOps::real(), directory / "none");
    REQUIRE(loaded.has_value());
    CHECK(loaded->history.rows().empty());
    std::filesystem::create_directory(directory / "dir");
    CHECK_FALSE(load_history(FileOps::real(), directory / "dir").has_value());
  }

  TEST_CASE("every truncation of the file keeps the whole lines before it") {
    History history;
    for (const std::uint64_t version : {1u, 2u, 3u}) history.put(sample_row(version));
    const std::string text = history.text();
    const std::size_t line = text.size() / 3;
    for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
      const auto parsed = History::parse(std::string_view(text).substr(0, bytes));
      // The last line counts without its line end too.
      const std::size_t whole = (bytes + 1) / line;
      CAPTURE(bytes);
      REQUIRE(parsed.history.rows().size() == whole);
      REQUIRE(parsed.lines_skipped == (bytes > whole * line ? 1u : 0u));
    }
  }

  TEST_CASE("lines that are no rows are skipped and counted") {
    History history;
    history.put(sample_row(7));
    const std::string good = history.text();
    std::string text = "garbage\n" + good + "\n{}\n{\"schema\":\"deltarelay.version/1\"}\n" +
                       "{\"schema\":\"deltarelay.version/1\",\"version\":{\"version\":8}}\n" + std::string("\0\0\n", 3);
    const auto parsed = History::parse(text);
    CHECK(versions_of(parsed.history) == Versions{7});
    CHECK(parsed.lines_skipped == 5);
  }

  TEST_CASE("a save that fails half way leaves the old file") {
    TemporaryDirectory directory;
    const auto file = directory / "history.jsonl";
    History history;
    history.put(sample_row(7));
    REQUIRE(save_history(FileOps::real(), file, history.text()).has_value());
    history.put(sample_row(8));
    NoRename broken;
    CHECK_FALSE(save_history(broken, file, history.text()).has_value());
    const auto loaded = load_history(FileOps::real(), file);
    REQUIRE(loaded.has_value());
    CHECK(versions_of(loaded->history) == Versions{7});
  }

  TEST_CASE("a text never outgrows what can be loaded again") {
    History history;
    VersionRow wide = sample_row(1);
    wide.left_out.assign(5000, std::string(30, 'n'));
    for (std::uint64_t version = 1; version <= 600; ++version) {
      wide.version = Version{version};
      history.put(wide);
    }
    const std::string text = history.text();
    CHECK(text.size() <= history_bytes_max);
    const auto parsed = History::parse(text);
    CHECK(parsed.lines_skipped == 0);
    CHECK(parsed.history.rows().front().version == Version{600});
    CHECK(parsed.history.rows().size() < 600);
  }
}
