// Record headers: fields, limits, seals and every bit flipped.
#include "codec/record.hpp"

#include <doctest/doctest.h>

#include "codec/limits.hpp"
#include "tests/codec/content_keys.hpp"
#include "tests/codec/octets.hpp"

using namespace deltarelay::codec;
using deltarelay::tests::ContentKeys;
using deltarelay::tests::Exact;
using deltarelay::tests::pattern;

namespace {

RecordHeader sample_header(RecordType type) {
  RecordHeader header;
  header.type = type;
  header.stripe = StripeId{3};
  header.mesh.bytes.fill(std::byte{0x5a});
  header.epoch = Epoch{14};
  header.version = Version{1843};
  header.sequence = Sequence{77};
  return header;
}

}  // namespace

TEST_SUITE("codec/record") {
  TEST_CASE("a sealed record decodes to the header that was sealed and verifies") {
    const ContentKeys keys;
    const auto payload = pattern(1000, 1);
    const RecordPtr record = seal_record(sample_header(RecordType::frame), payload, &keys.signer);
    const auto header = decode_record_header(record->bytes);
    REQUIRE(header.has_value());
    CHECK(*header == record->header);
    CHECK(header->payload_bytes == 1000);
    CHECK(header->is_signed());
    CHECK(std::ranges::equal(record->payload(), payload));
    CHECK(verify_record(*record, header->mesh, keys.verifier).has_value());
  }

  TEST_CASE("every shorter header is truncated, and reads nothing past its end") {
    const auto record = seal_record(sample_header(RecordType::end), {}, nullptr);
    for (std::size_t size = 0; size < record_header_bytes; ++size) {
      const Exact cut(Bytes(record->bytes).first(size));
      CHECK(decode_record_header(cut.bytes()).error() == errc::truncated);
    }
  }

  TEST_CASE("each flipped bit of a signed record is refused") {
    const ContentKeys keys;
    const auto payload = pattern(40, 2);
    const auto record = seal_record(sample_header(RecordType::frame), payload, &keys.signer);
    for (std::size_t bit = 0; bit < record->bytes.size() * 8; ++bit) {
      Record bad;
      bad.bytes = record->bytes;
      bad.bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      const auto header = decode_record_header(bad.bytes);
      if (!header) continue;
      bad.header = *header;
      CAPTURE(bit);
      CHECK_FALSE(verify_record(bad, record->header.mesh, keys.verifier).has_value());
    }
  }

  TEST_CASE("each refusal has its own code") {
    const ContentKeys keys, others;
    const auto payload = pattern(64, 3);
    const auto good = seal_record(sample_header(RecordType::frame), payload, &keys.signer);
    const auto decode_with = [&](std::size_t at, int value) {
      auto bytes = good->bytes;
      bytes[at] = static_cast<std::byte>(value);
      return decode_record_header(bytes).error();
    };
    CHECK(decode_with(0, 'X') == errc::bad_magic);
    CHECK(decode_with(4, 2) == errc::major_version_unsupported);
    CHECK(decode_with(10, 3) == errc::reserved_not_zero);
    CHECK(decode_with(14, 1) == errc::reserved_not_zero);
    CHECK(decode_with(60, 1) == errc::reserved_not_zero);
    CHECK(decode_with(59, 1) == errc::payload_too_large);

    CHECK(verify_record(*good, MeshId{}, keys.verifier).error() == errc::mesh_mismatch);
    CHECK(verify_record(*good, good->header.mesh, others.verifier).error() == errc::signature_invalid);
    const auto unsigned_one = seal_record(sample_header(RecordType::frame), payload, nullptr);
    CHECK(verify_record(*unsigned_one, good->header.mesh, keys.verifier).error() == errc::not_signed);
    CHECK(verify_record_payload(*unsigned_one).has_value());

    Record changed = *good;
    changed.bytes.back() ^= std::byte{1};
    CHECK(verify_record(changed, good->header.mesh, keys.verifier).error() == errc::payload_digest_mismatch);
    changed.bytes.pop_back();
    CHECK(verify_record(changed, good->header.mesh, keys.verifier).error() == errc::truncated);
  }

  TEST_CASE("a newer minor version and an unknown type decode, so that they can be skipped") {
    auto header = sample_header(static_cast<RecordType>(99));
    header.minor = 7;
    const auto record = seal_record(header, pattern(5, 4), nullptr);
    const auto decoded = decode_record_header(record->bytes);
    REQUIRE(decoded.has_value());
    CHECK(decoded->minor == 7);
    CHECK(decoded->payload_bytes == 5);
  }

  TEST_CASE("a link message carries neither digest nor signature, and is refused with one") {
    auto bytes = make_link_message(sample_header(RecordType::link_first), pattern(9, 5))->bytes;
    REQUIRE(decode_record_header(bytes).has_value());
    bytes[100] = std::byte{1};
    CHECK(decode_record_header(bytes).error() == errc::reserved_not_zero);
    bytes[100] = std::byte{0};
    bytes[70] = std::byte{1};
    CHECK(decode_record_header(bytes).error() == errc::reserved_not_zero);
  }
}
