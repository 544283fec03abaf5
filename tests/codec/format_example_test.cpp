// The worked example of FORMAT.md, taken out of the text itself: what it says is what the code reads and writes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>

#include "codec/encoding/class_model.hpp"
#include "codec/frame.hpp"
#include "codec/record.hpp"

using namespace deltarelay::codec;

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The bytes at the front of a line: pairs of hex digits, up to three spaces apart from the remark that follows.
void append_bytes(const std::string& line, std::vector<std::byte>& out) {
  std::size_t at = 0;
  while (at + 1 < line.size()) {
    const int high = hex_value(line[at]), low = hex_value(line[at + 1]);
    if (high < 0 || low < 0 || (at + 2 < line.size() && line[at + 2] != ' ')) return;
    out.push_back(static_cast<std::byte>(high * 16 + low));
    const std::size_t next = line.find_first_not_of(' ', at + 2);
    if (next == std::string::npos || next - at > 4) return;
    at = next;
  }
}

std::vector<std::byte> example(const std::string& name) {
  std::ifstream in(DELTARELAY_FORMAT_MD);
  std::vector<std::byte> out;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "```hex " + name) {
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      append_bytes(line, out);
    }
  }
  return out;
}

}  // namespace

TEST_SUITE("codec/format") {
  TEST_CASE("the worked example decodes to what the text says") {
    Record record;
    record.bytes = example("record");
    REQUIRE(record.bytes.size() == record_header_bytes + 29);
    const auto header = decode_record_header(record.bytes);
    REQUIRE(header.has_value());
    record.header = *header;
    CHECK(header->type == RecordType::frame);
    CHECK(header->epoch == Epoch{14});
    CHECK(header->version == Version{1843});
    CHECK(header->stripe == StripeId{1});
    CHECK(header->sequence == Sequence{77});
    CHECK(verify_record_payload(record).has_value());

    const auto view = FrameView::parse(record.payload());
    REQUIRE(view.has_value());
    REQUIRE(view->entries.size() == 1);
    CHECK(view->entries[0].id == BlockId{TensorIndex{2}, BlockIndex{5}});
    CHECK(view->entries[0].encoding == Encoding::sparse);
    const auto base = example("base"), next = example("next");
    REQUIRE(next.size() == 32);
    std::vector<std::byte> out(next.size());
    BlockDecoder decoder;
    REQUIRE(decoder.decode(view->entries[0], view->tables, DType::BF16, base, out).has_value());
    CHECK(out == next);
    CHECK(digest_of(out) == view->entries[0].target);
  }

  TEST_CASE("the worked example is what the frame builder and the sealer write") {
    const auto bytes = example("record");
    const auto header = decode_record_header(bytes);
    REQUIRE(header.has_value());
    const auto view = FrameView::parse(Bytes(bytes).subspan(record_header_bytes));
    REQUIRE(view.has_value());
    CHECK(seal_record(*header, build_frame(view->tables, view->entries), nullptr)->bytes == bytes);
  }

  TEST_CASE("the worked example of a class block decodes to what the text says, and has one form") {
    const auto payload = example("class payload");
    const auto view = FrameView::parse(payload);
    REQUIRE(view.has_value());
    REQUIRE(view->entries.size() == 1);
    CHECK(view->entries[0].encoding == Encoding::class_rans);
    const auto base = example("base"), next = example("next");
    std::vector<std::byte> out(next.size());
    BlockDecoder decoder;
    REQUIRE(decoder.decode(view->entries[0], view->tables, DType::BF16, base, out).has_value());
    CHECK(out == next);
    CHECK(digest_of(out) == view->entries[0].target);
    CHECK(build_frame(view->tables, view->entries) == payload);
    const auto models = read_class_models(view->tables);
    REQUIRE(models.has_value());
    CHECK(std::ranges::equal(write_class_models(*models), view->tables));
  }
}
