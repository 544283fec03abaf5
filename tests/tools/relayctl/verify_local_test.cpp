// `relayctl verify DIR`: exit codes and what is said, for images that are and are not what their ledger states.
#include "tools/relayctl/verify_local.hpp"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <fstream>

#include "relay/store/applier.hpp"
#include "relay/store/ledger.hpp"
#include "tests/relay/store/sample_image.hpp"
#include "tools/relayctl/context.hpp"

using namespace deltarelay;
using namespace deltarelay::relay::testing;
namespace fs = std::filesystem;

namespace {

struct Said {
  int code = -1;
  std::string out, err;
};

std::string take(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c = 0; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

Said verify(const fs::path& image, const std::optional<fs::path>& state, bool deep, bool json = true) {
  relayctl::Context context;
  if (json) context.format = relayctl::OutputFormat::json;
  context.out = std::tmpfile();
  context.err = std::tmpfile();
  REQUIRE((context.out != nullptr && context.err != nullptr));
  Said said;
  said.code = relayctl::verify_local(context, image, state, deep);
  said.out = take(context.out);
  said.err = take(context.err);
  return said;
}

/// An image and a ledger that states it as version 3.
struct Committed {
  TemporaryDirectory dir;
  fs::path image = dir.path / "image", state = dir.path / "state", shard;

  Committed() {
    shard = write_sample(image);
    fs::create_directories(state);
    // Without a LAYOUT record the ledger knows no block size: verify_local() takes the default.
    auto opened = relay::Image::open(image, codec::block_bytes_default);
    REQUIRE(opened.has_value());
    const auto table = relay::hash_image(**opened, 1, std::atomic<bool>(false)).value();
    relay::Ledger ledger(state);
    relay::LedgerRecord record;
    record.committed = codec::Version{3};
    record.image = codec::digest_of(std::span<const codec::Digest>(table));
    REQUIRE(ledger.save_digests(record.committed, table).has_value());
    REQUIRE(ledger.save(record).has_value());
  }

  void damage() const {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(sample_header().size() + 17));
    file.put('!').flush();
  }
};

boost::json::object parsed(const Said& said) {
  return boost::json::parse(said.out).as_object();
}

}  // namespace

TEST_SUITE("tools/relayctl/verify_local") {
  TEST_CASE("an image that is what its ledger states gives 0, shallow and deep") {
    const Committed sample;
    for (const bool deep : {false, true}) {
      const Said said = verify(sample.image, sample.state, deep);
      CHECK(said.code == 0);
      CHECK(said.err.empty());
      const auto document = parsed(said);
      CHECK(document.at("schema").as_string() == "deltarelay.verify-local/1");
      CHECK(document.at("ok").as_bool());
      CHECK(document.at("version").as_string() == "3");
      CHECK(document.contains("computed_digest") == deep);
      if (deep) CHECK(document.at("computed_digest") == document.at("stated_digest"));
    }
  }

  TEST_CASE("a changed byte is found by deep alone, with 1, the tensor's name and the number of blocks") {
    const Committed sample;
    sample.damage();
    CHECK(verify(sample.image, sample.state, false).code == 0);
    const Said said = verify(sample.image, sample.state, true);
    CHECK(said.code == 1);
    CHECK(said.err.find("error: ") == 0);
    CHECK(said.err.find("block 0 of \"a\"") != std::string::npos);
    CHECK(parsed(said).at("differing_blocks").to_number<int>() == 1);
    CHECK_FALSE(parsed(said).at("ok").as_bool());
    const Said text = verify(sample.image, sample.state, true, false);
    CHECK(text.out.find("damaged") != std::string::npos);
  }

  TEST_CASE("without a ledger the digest is computed, to be compared between hosts") {
    const Committed sample;
    const Said said = verify(sample.image, std::nullopt, true);
    CHECK(said.code == 0);
    CHECK_FALSE(parsed(said).contains("version"));
    const Said with = verify(sample.image, sample.state, true);
    CHECK(parsed(said).at("computed_digest") == parsed(with).at("stated_digest"));
    CHECK(verify(sample.image, std::nullopt, false, false).out.find("nothing else was looked at") != std::string::npos);
  }

  TEST_CASE("a directory that is no checkpoint gives 3, a ledger without a version 6, a damaged ledger 3") {
    const Committed sample;
    CHECK(verify(sample.dir.path / "absent", std::nullopt, false).code == 3);
    std::ofstream(sample.shard, std::ios::binary | std::ios::trunc) << "cut";
    CHECK(verify(sample.image, std::nullopt, true).code == 3);
    const Committed other;
    const Said empty = verify(other.image, other.dir.path, true);
    CHECK(empty.code == 6);
    CHECK(empty.err.find("states no committed version") != std::string::npos);
    for (const auto& entry : fs::directory_iterator(other.state)) {
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(20);
      file.put('\x5a').flush();
    }
    const Said damaged = verify(other.image, other.state, true);
    CHECK(damaged.code == 3);
    CHECK(damaged.err.find("error: ") == 0);
    const auto document = parsed(damaged);
    CHECK(document.at("schema").as_string() == "deltarelay.error/1");
    CHECK(document.at("exit_code").to_number<int>() == 3);
    CHECK(verify(other.image, other.state, true, false).out.empty());
  }
}
