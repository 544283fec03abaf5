// Records out of a stream that is cut anywhere, or damaged.
#include "codec/record_reader.hpp"

#include <doctest/doctest.h>

#include "tests/codec/octets.hpp"

using namespace deltarelay::codec;
using deltarelay::tests::Exact;
using deltarelay::tests::pattern;

namespace {

std::vector<std::byte> stream_of(std::initializer_list<std::pair<int, std::size_t>> types_and_sizes) {
  std::vector<std::byte> out;
  std::uint64_t sequence = 0;
  for (const auto& [type, size] : types_and_sizes) {
    RecordHeader header;
    header.type = static_cast<RecordType>(type);
    header.sequence = Sequence{sequence++};
    const auto record = seal_record(header, pattern(size, sequence), nullptr);
    out.insert(out.end(), record->bytes.begin(), record->bytes.end());
  }
  return out;
}

struct Outcome {
  std::vector<RecordPtr> records;
  error_code failure, end;
  std::uint64_t offset = 0, skipped = 0;
};

Outcome read_in_pieces(Bytes in, std::size_t piece_bytes) {
  Outcome out;
  RecordReader reader;
  while (!in.empty() && !out.failure) {
    const Exact copy(in.first(std::min(piece_bytes, in.size())));
    Bytes piece = copy.bytes();
    in = in.subspan(piece.size());
    while (!piece.empty() && !out.failure) {
      auto record = reader.read(piece);
      if (!record) {
        out.failure = record.error();
      } else if (*record != nullptr) {
        out.records.push_back(*record);
      }
    }
  }
  if (auto end = reader.finish(); !end) out.end = end.error();
  out.offset = reader.offset();
  out.skipped = reader.skipped_records();
  return out;
}

}  // namespace

TEST_SUITE("codec/record_reader") {
  TEST_CASE("the same records come out whatever the pieces") {
    const auto stream = stream_of({{1, 60}, {2, 400}, {99, 33}, {98, 0}, {5, 0}, {4, 1}});
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
      const Outcome out = read_in_pieces(stream, piece);
      CAPTURE(piece);
      REQUIRE(!out.failure);
      CHECK(!out.end);
      CHECK(out.skipped == 2);
      CHECK(out.offset == stream.size());
      REQUIRE(out.records.size() == 4);
      CHECK(out.records[1]->header.payload_bytes == 400);
      CHECK(out.records[3]->header.sequence == Sequence{5});
      for (const auto& record : out.records) CHECK(verify_record_payload(*record).has_value());
    }
  }

  TEST_CASE("a torn tail is found at each cut, and says where it begins") {
    const auto stream = stream_of({{1, 60}, {99, 40}, {4, 30}});
    const std::size_t second = 160 + 60, third = second + 160 + 40;
    for (std::size_t size = 0; size < stream.size(); ++size) {
      const Outcome out = read_in_pieces(Bytes(stream).first(size), 64);
      CAPTURE(size);
      CHECK(!out.failure);
      const bool between = size == 0 || size == second || size == third;
      CHECK((out.end == errc::truncated) == !between);
      if (size > third) CHECK(out.offset == third);
    }
  }

  TEST_CASE("damage before the tail is an error with its offset") {
    auto stream = stream_of({{1, 60}, {2, 400}});
    stream[160 + 60] ^= std::byte{1};
    const Outcome out = read_in_pieces(stream, 100);
    CHECK(out.failure == errc::bad_magic);
    CHECK(out.offset == 160 + 60);
    CHECK(out.records.size() == 1);
  }

  TEST_CASE("a length past the limit of its type is refused before any of it is kept") {
    auto stream = stream_of({{1, 60}});
    stream[59] = std::byte{0x7f};
    CHECK(read_in_pieces(stream, 1000).failure == errc::payload_too_large);
  }
}
