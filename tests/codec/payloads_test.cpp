// Payloads of the records that are no frames: round trips, truncations and limits.
#include "codec/payloads.hpp"

#include <doctest/doctest.h>

#include "codec/bytes.hpp"
#include "codec/limits.hpp"
#include "tests/codec/octets.hpp"

using namespace deltarelay::codec;
using deltarelay::tests::Exact;
using deltarelay::tests::pattern;

namespace {

Digest digest_with(int value) {
  Digest out;
  out.bytes.fill(static_cast<std::byte>(value));
  return out;
}

BeginPayload sample_begin() {
  return {Version{41}, digest_with(1), digest_with(2), block_bytes_default, 4, 1'000'003};
}

FilePayload sample_file() {
  FilePayload file{"config.json", {}, pattern(300, 7)};
  file.sha256 = sha256_of(file.content);
  return file;
}

EndPayload sample_end() {
  EndPayload end;
  end.frame_count = 12;
  end.changed_blocks = 100;
  end.changed_elements = 1u << 20;
  end.image = digest_with(3);
  end.layout_digest = digest_with(4);
  end.companions = {{"config.json", 10, {}}, {"tokenizer.json", 1u << 22, {}}};
  return end;
}

LayoutPayload sample_layout() {
  return {pattern(50, 8),
          {{"a.safetensors", 5000, pattern(100, 9)}, {"b.safetensors", 9, pattern(9, 10)}},
          pattern(20, 11)};
}

// Round trip, every truncation, one byte more: what each decoder owes.
template <class Payload>
void check_decoder(const Payload& sample) {
  const std::vector<std::byte> encoded = sample.encode();
  const auto whole = Payload::decode(Exact(encoded).bytes());
  REQUIRE(whole.has_value());
  CHECK(*whole == sample);
  for (std::size_t size = 0; size < encoded.size(); ++size) {
    const Exact cut(Bytes(encoded).first(size));
    CAPTURE(size);
    CHECK(Payload::decode(cut.bytes()).has_error());
  }
  auto longer = encoded;
  longer.push_back(std::byte{0});
  CHECK(Payload::decode(longer).error() == errc::trailing_bytes);
}

}  // namespace

TEST_SUITE("codec/payloads") {
  TEST_CASE("BEGIN, FILE, END and LAYOUT come back as they were, and neither shorter nor longer") {
    check_decoder(sample_begin());
    check_decoder(sample_file());
    check_decoder(sample_end());
    check_decoder(sample_layout());
    check_decoder(LayoutPayload{});
    check_decoder(EndPayload{});
  }

  TEST_CASE("BEGIN refuses block sizes that no mesh may have, and no stripes") {
    for (const std::uint32_t size : {0u, 1u, 2048u, 4097u, 3u << 20, 8u << 20}) {
      auto begin = sample_begin();
      begin.block_bytes = size;
      CHECK(BeginPayload::decode(begin.encode()).error() == errc::malformed_payload);
    }
    auto begin = sample_begin();
    begin.stripe_count = 0;
    CHECK(BeginPayload::decode(begin.encode()).error() == errc::malformed_payload);
  }

  TEST_CASE("file names that could leave the directory or replace a shard are refused") {
    for (const char* name : {"", ".", "..", "../x", "a/b", "/etc/passwd", "a\nb", "model.safetensors",
                             "model.safetensors.index.json", "deltarelay.json", ".deltarelay-lock"}) {
      CAPTURE(name);
      CHECK_FALSE(is_companion_name(name));
      auto file = sample_file();
      file.name = name;
      CHECK(FilePayload::decode(file.encode()).error() == errc::malformed_payload);
    }
    CHECK_FALSE(is_companion_name(std::string(256, 'a')));
    CHECK_FALSE(is_companion_name(std::string_view("a\0b", 3)));
    CHECK(is_companion_name("tokenizer.json"));
    CHECK(is_companion_name("..hidden"));
    CHECK(is_shard_name("model-00001-of-00002.safetensors"));
    CHECK_FALSE(is_shard_name("../model.safetensors"));
  }

  TEST_CASE("FILE whose content is not what its SHA-256 says is refused") {
    auto file = sample_file();
    file.content[5] ^= std::byte{1};
    CHECK(FilePayload::decode(file.encode()).error() == errc::payload_digest_mismatch);
  }

  TEST_CASE("names out of order or twice are refused") {
    auto end = sample_end();
    std::swap(end.companions[0], end.companions[1]);
    CHECK(EndPayload::decode(end.encode()).error() == errc::malformed_payload);
    auto layout = sample_layout();
    layout.shards[1].name = layout.shards[0].name;
    CHECK(LayoutPayload::decode(layout.encode()).error() == errc::malformed_payload);
  }

  TEST_CASE("a count that the payload cannot hold allocates nothing") {
    auto encoded = EndPayload{}.encode();
    store_le(encoded.data() + encoded.size() - 4, std::uint32_t{10'000});
    CHECK(EndPayload::decode(encoded).error() == errc::truncated);
    store_le(encoded.data() + encoded.size() - 4, std::uint32_t{0xffffffff});
    CHECK(EndPayload::decode(encoded).error() == errc::table_too_large);
  }

  TEST_CASE("varints: shortest form only, all 64 bits") {
    for (const std::uint64_t value : {0ull, 1ull, 127ull, 128ull, 16383ull, 16384ull, ~0ull, 1ull << 63}) {
      std::vector<std::byte> bytes;
      ByteWriter(bytes).varint(value);
      ByteReader reader(bytes);
      CHECK(reader.varint() == value);
      CHECK(reader.finish().has_value());
    }
    const auto refused = [](std::initializer_list<int> in) {
      std::vector<std::byte> bytes;
      for (const int b : in) bytes.push_back(static_cast<std::byte>(b));
      ByteReader reader(bytes);
      (void)reader.varint();
      return !reader.ok();
    };
    CHECK(refused({0x80, 0x00}));
    CHECK(refused({0x80}));
    CHECK(refused({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}));
    CHECK(refused({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
  }
}
