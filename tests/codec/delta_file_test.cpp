// Delta files: written, read back, cut off and damaged.
#include "codec/delta_file.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "codec/limits.hpp"
#include "tests/codec/content_keys.hpp"
#include "tests/codec/sample_blocks.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::tests;

namespace {

const DeltaIdentity identity{{}, Epoch{3}, Version{8}};

BeginPayload sample_begin() {
  BeginPayload begin;
  begin.base = Version{7};
  begin.block_bytes = block_bytes_default;
  return begin;
}

EncodedFrame sample_frame(std::uint32_t block) {
  const BlockPair pair = trained_block(2048, 0.05, block);
  const BlockInput input{{TensorIndex{0}, BlockIndex{block}}, pair.dtype, pair.base, pair.next};
  std::vector<EncodedFrame> frames;
  FrameEncoder().encode({&input, 1}, frames);
  return std::move(frames.at(0));
}

FilePayload sample_file() {
  FilePayload file{"config.json", {}, pattern(100, 1)};
  file.sha256 = sha256_of(file.content);
  return file;
}

std::filesystem::path write_sample(const TempDir& dir, const ContentSigner* signer) {
  const auto path = dir.path() / "step.delta";
  auto writer = DeltaFileWriter::create(path, identity, signer).value();
  EndPayload end;
  for (std::uint32_t i = 0; i < 3; ++i) {
    writer->add_frame(sample_frame(i)).value();
    ++end.frame_count;
  }
  writer->add_file(sample_file()).value();
  CHECK_FALSE(std::filesystem::exists(path));
  writer->finish(sample_begin(), end).value();
  CHECK(writer->bytes() == std::filesystem::file_size(path));
  CHECK_FALSE(std::filesystem::exists(path.string() + ".partial"));
  return path;
}

// Reads all of a file; the failure that ended it, or none.
std::optional<Failure> read_all(const std::filesystem::path& path, const ContentVerifier* verifier = nullptr) {
  auto reader = DeltaFileReader::open(path, verifier);
  if (!reader) return reader.error();
  while (true) {
    auto record = (*reader)->next();
    if (!record) return record.error();
    if (*record == nullptr) return std::nullopt;
  }
}

std::vector<char> slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void spit(const std::filesystem::path& path, const std::vector<char>& bytes, std::size_t size) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(size));
}

}  // namespace

TEST_SUITE("codec/delta_file") {
  TEST_CASE("a delta file gives back its records in order, with what opened and closed it") {
    const TempDir dir;
    const auto path = write_sample(dir, nullptr);
    auto reader = DeltaFileReader::open(path, nullptr).value();
    CHECK(reader->begin() == sample_begin());
    CHECK(reader->identity().version == identity.version);
    CHECK_FALSE(reader->is_signed());
    std::vector<RecordType> types;
    while (auto record = reader->next().value()) types.push_back(record->header.type);
    using enum RecordType;
    CHECK(types == std::vector{frame, frame, frame, file});
    REQUIRE(reader->end().has_value());
    CHECK(reader->end()->frame_count == 3);
    CHECK(reader->next().value() == nullptr);
  }

  TEST_CASE("signed files verify with their key and with no other; unsigned ones with none") {
    const ContentKeys keys, others;
    const auto path = write_sample(keys.dir, &keys.signer);
    CHECK_FALSE(read_all(path, &keys.verifier).has_value());
    CHECK(read_all(path, &others.verifier)->code == errc::signature_invalid);
    const TempDir dir;
    CHECK(read_all(write_sample(dir, nullptr), &keys.verifier)->code == errc::not_signed);
  }

  TEST_CASE("a file cut off anywhere is refused, and the error says where it ends") {
    const TempDir dir;
    const auto bytes = slurp(write_sample(dir, nullptr));
    const auto cut = dir.path() / "cut.delta";
    for (std::size_t size = 0; size < bytes.size(); size += size < 400 ? 1 : 37) {
      spit(cut, bytes, size);
      const auto failure = read_all(cut);
      CAPTURE(size);
      REQUIRE(failure.has_value());
      CHECK(failure->code == errc::truncated);
      CHECK(failure->text().find("cut.delta, record at byte") != std::string::npos);
    }
  }

  TEST_CASE("damage and records that do not belong are refused by name") {
    const TempDir dir;
    auto bytes = slurp(write_sample(dir, nullptr));
    const auto bad = dir.path() / "bad.delta";
    auto changed = bytes;
    changed[500] = static_cast<char>(changed[500] ^ 1);
    spit(bad, changed, changed.size());
    CHECK(read_all(bad)->code == errc::payload_digest_mismatch);
    changed = bytes;
    changed.insert(changed.end(), bytes.begin(), bytes.begin() + 214);
    spit(bad, changed, changed.size());
    CHECK(read_all(bad)->code == errc::trailing_bytes);
    spit(bad, std::vector<char>(1000, 'x'), 1000);
    CHECK(read_all(bad)->code == errc::bad_magic);
    CHECK(read_all(dir.path() / "absent.delta")->code == errc::io_error);
  }

  TEST_CASE("no header bit of a record can be flipped unnoticed, but for the minor version") {
    const TempDir dir;
    const auto bytes = slurp(write_sample(dir, nullptr));
    const auto bad = dir.path() / "bad.delta";
    // BEGIN, the first FRAME and END.
    const std::size_t begin_bytes = record_header_bytes + BeginPayload{}.encode().size();
    const std::size_t end_bytes = record_header_bytes + EndPayload{}.encode().size();
    for (const std::size_t at : {std::size_t{0}, begin_bytes, bytes.size() - end_bytes}) {
      for (std::size_t bit = 0; bit < 8 * record_header_bytes; ++bit) {
        if (bit / 8 == 6 || bit / 8 == 7) continue;  // minor: a newer release's records are read all the same
        auto changed = bytes;
        changed[at + bit / 8] = static_cast<char>(changed[at + bit / 8] ^ (1 << (bit % 8)));
        spit(bad, changed, changed.size());
        CAPTURE(at);
        CAPTURE(bit);
        CHECK(read_all(bad).has_value());
      }
    }
  }

  TEST_CASE("a record taken out is noticed") {
    const TempDir dir;
    const auto bytes = slurp(write_sample(dir, nullptr));
    const auto bad = dir.path() / "bad.delta";
    const std::size_t end_bytes = record_header_bytes + EndPayload{}.encode().size();
    const std::size_t file_bytes = record_header_bytes + sample_file().encode().size();
    auto changed = std::vector<char>(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(end_bytes + file_bytes));
    changed.insert(changed.end(), bytes.end() - static_cast<std::ptrdiff_t>(end_bytes), bytes.end());
    spit(bad, changed, changed.size());
    const auto failure = read_all(bad);
    REQUIRE(failure.has_value());
    CHECK(failure->text().find("records out of order") != std::string::npos);
  }

  TEST_CASE("a writer that is given up leaves nothing behind") {
    const TempDir dir;
    { auto writer = DeltaFileWriter::create(dir.path() / "x.delta", identity, nullptr).value(); }
    CHECK(std::filesystem::is_empty(dir.path()));
    CHECK(DeltaFileWriter::create(dir.path() / "absent" / "x.delta", identity, nullptr).error().code == errc::io_error);
  }
}
