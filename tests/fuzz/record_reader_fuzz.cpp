// RecordReader: the same records, skips and end whether the input comes whole or in pieces; every record that comes out
// encodes to the bytes that went in. The first byte is the size of a piece.
#include <vector>

#include "codec/record_reader.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace deltarelay::codec;
using deltarelay::fuzz::Input;
using deltarelay::fuzz::promise;

namespace {

struct Outcome {
  std::vector<RecordPtr> records;
  error_code failure, end;
  std::uint64_t offset = 0, skipped = 0;
};

Outcome read(Bytes in, std::size_t piece_bytes) {
  Outcome out;
  RecordReader reader;
  while (!in.empty() && !out.failure) {
    Bytes piece = in.first(piece_bytes < in.size() ? piece_bytes : in.size());
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

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::size_t piece = std::size_t{input.byte()} + 1;
  const Outcome whole = read(input.rest(), input.rest().size() + 1), pieces = read(input.rest(), piece);
  promise(whole.failure == pieces.failure && whole.offset == pieces.offset && whole.skipped == pieces.skipped,
          "pieces do not matter");
  promise(whole.failure || whole.end == pieces.end, "pieces do not matter at the end");
  promise(whole.records.size() == pieces.records.size(), "pieces give the same records");
  for (std::size_t i = 0; i < whole.records.size(); ++i) {
    const Record& record = *whole.records[i];
    promise(record.bytes == pieces.records[i]->bytes, "pieces give the same bytes");
    std::array<std::byte, record_header_bytes> header;
    encode_record_header(record.header, header);
    promise(std::memcmp(header.data(), record.bytes.data(), header.size()) == 0, "a header encodes as it was read");
  }
  return 0;
}
