// Link messages: round trips, truncations and limits.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "relay/core/messages.hpp"

namespace deltarelay::relay {
namespace {

NodeRecord sample_record() {
  NodeRecord record;
  record.name = "hel-02";
  record.parent = "hel-01";
  record.boot_id = 7;
  record.attach_sequence = (3ull << 32) | 1;
  record.report_sequence = 12;
  record.rank = 2;
  record.state = NodeState::failed;
  record.committed = Version{41};
  record.receiving = Version{42};
  record.frames_received = 10;
  record.frames_applied = 9;
  record.reachable = false;
  record.reason_code = "DISK_FULL";
  record.reason_text = "needs 1.9 GiB";
  return record;
}

std::vector<Message> samples() {
  std::vector<Message> out;
  Hello hello;
  hello.node = "hel-02";
  hello.boot_id = 1;
  hello.committed = Version{5};
  hello.resume = LogPosition{Version{6}, Sequence{17}};
  out.push_back(hello);
  Welcome welcome;
  welcome.node = "hel-01";
  welcome.mode = Mode::sync;
  out.push_back(welcome);
  out.push_back(Heartbeat{});
  out.push_back(Report{{sample_record(), NodeRecord{}}});
  out.push_back(AskAgain{LogPosition{Version{6}, Sequence{3}}});
  out.push_back(Resume{Version{6}, LogPosition{Version{7}, Sequence{0}}});
  out.push_back(Closing{"RANK", "not above this node"});
  out.push_back(SyncManifestRequest{});
  out.push_back(SyncManifest{{std::byte{1}, std::byte{2}}, {std::byte{3}}});
  out.push_back(SyncDigests{64, {codec::Digest{}, codec::Digest{}}});
  out.push_back(SyncBlocksRequest{{1, 2, 99}});
  out.push_back(SyncBlocks{{std::byte{9}}});
  out.push_back(SyncUnavailable{{4}});
  out.push_back(SyncFile{{std::byte{8}, std::byte{7}}});
  return out;
}

codec::Record with_payload(const codec::Record& original, codec::Bytes payload) {
  codec::Record record;
  record.header = original.header;
  record.header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  record.bytes = std::vector<std::byte>(codec::record_header_bytes + payload.size());  // exact size: ASan sees overruns
  std::copy_n(original.bytes.begin(), codec::record_header_bytes, record.bytes.begin());
  std::copy(payload.begin(), payload.end(), record.bytes.begin() + codec::record_header_bytes);
  return record;
}

}  // namespace

TEST_SUITE("relay/core/messages") {
  TEST_CASE("every message survives the wire") {
    for (const Message& message : samples()) {
      const codec::RecordPtr record = encode_message(message, codec::MeshId{});
      CHECK_FALSE(record->header.is_log_record());
      auto decoded = decode_message(*record);
      REQUIRE(decoded.has_value());
      CHECK(*decoded == message);
    }
  }

  TEST_CASE("a truncated message is refused, or is another whole message of open length") {
    for (const Message& message : samples()) {
      const codec::RecordPtr record = encode_message(message, codec::MeshId{});
      // These two end with bytes whose length is the record's own, so each shorter one is whole as well.
      const bool open_length = std::holds_alternative<SyncBlocks>(message) || std::holds_alternative<SyncFile>(message);
      for (std::size_t n = 0; n < record->payload().size(); ++n) {
        auto decoded = decode_message(with_payload(*record, record->payload().first(n)));
        CHECK(decoded.has_value() == open_length);
      }
    }
  }

  TEST_CASE("left-over bytes are refused") {
    const codec::RecordPtr record = encode_message(AskAgain{}, codec::MeshId{});
    std::vector<std::byte> longer(record->payload().size() + 1);
    std::copy(record->payload().begin(), record->payload().end(), longer.begin());
    auto decoded = decode_message(with_payload(*record, longer));
    REQUIRE(decoded.has_error());
    CHECK(decoded.error() == codec::make_error_code(codec::errc::trailing_bytes));
  }

  TEST_CASE("a count that the payload cannot hold allocates nothing and is refused") {
    const codec::RecordPtr record = encode_message(SyncBlocksRequest{{1}}, codec::MeshId{});
    std::vector<std::byte> payload(record->payload().begin(), record->payload().end());
    payload[0] = std::byte{0xff};
    CHECK(decode_message(with_payload(*record, payload)).has_error());
  }

  TEST_CASE("an unknown message type is named as such, so that it can be skipped") {
    codec::RecordHeader header;
    header.type = static_cast<codec::RecordType>(0x1ff);
    const codec::RecordPtr record = codec::make_link_message(header, {});
    auto decoded = decode_message(*record);
    REQUIRE(decoded.has_error());
    CHECK(decoded.error() == codec::make_error_code(codec::errc::unknown_record_type));
  }
}

}  // namespace deltarelay::relay
