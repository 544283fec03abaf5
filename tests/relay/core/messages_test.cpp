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
  record.attach_sequence = first_of_boot(3) + 1;
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

VerifyResult sample_result() {
  VerifyResult result;
  result.node = "hel-02";
  result.serial = first_of_boot(3) + 9;
  result.state = VerifyState::damaged;
  result.version = Version{41};
  result.checked_bytes = 1ull << 40;
  result.total_bytes = 1ull << 41;
  result.damaged_blocks = 2;
  result.milliseconds = 61'500;
  result.damaged = {{"model.layers.3.mlp.up", 17}, {"model.norm", 0}};
  result.text = "2 of 64 blocks differ";
  return result;
}

VerifyResult plain_result() {
  VerifyResult result;
  result.state = VerifyState::ok;
  return result;
}

std::vector<Message> samples() {
  std::vector<Message> out;
  Hello hello;
  hello.node = "hel-02";
  hello.boot_id = 1;
  hello.committed = Version{5};
  hello.resume = {LogPosition{Version{6}, Sequence{17}}, Epoch{4}};
  out.push_back(hello);
  Welcome welcome;
  welcome.node = "hel-01";
  welcome.mode = Mode::sync;
  out.push_back(welcome);
  out.push_back(Heartbeat{});
  out.push_back(Report{{sample_record(), NodeRecord{}}});
  out.push_back(AskAgain{LogPosition{Version{6}, Sequence{3}}});
  out.push_back(Resume{Version{6}, hello.image, {LogPosition{Version{7}, Sequence{0}}, Epoch{5}}});
  out.push_back(Closing{"RANK", "not above this node"});
  out.push_back(SyncManifestRequest{});
  out.push_back(SyncManifest{{std::byte{1}, std::byte{2}}, {std::byte{3}}});
  out.push_back(SyncDigests{64, {codec::Digest{}, codec::Digest{}}});
  out.push_back(SyncBlocksRequest{{1, 2, 99}});
  out.push_back(SyncBlocks{{std::byte{9}}});
  out.push_back(SyncUnavailable{{4}});
  out.push_back(SyncFile{{std::byte{8}, std::byte{7}}});
  out.push_back(VerifyOrder{0xfedcba9876543210, true});
  out.push_back(VerifyResults{3, {sample_result(), plain_result()}});
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

  TEST_CASE("verify messages that contradict themselves or pass a bound are refused") {
    const auto refused = [](const Message& message, std::size_t at, unsigned char value) {
      const codec::RecordPtr record = encode_message(message, codec::MeshId{});
      REQUIRE(decode_message(*record).has_value());
      std::vector<std::byte> payload(record->payload().begin(), record->payload().end());
      REQUIRE(payload.at(at) != std::byte{value});
      payload[at] = std::byte{value};
      return decode_message(with_payload(*record, payload)).has_error();
    };
    CHECK(refused(VerifyOrder{1, true}, 0, 0));  // round 0
    CHECK(refused(VerifyOrder{1, true}, 8, 2));  // neither deep nor shallow
    const Message one{VerifyResults{1, {plain_result()}}};
    CHECK(refused(one, 0, 0));
    CHECK(refused(one, 8, 2));  // two results in the bytes of one
    CHECK(refused(one, 9, 1));  // 257 results
    constexpr std::size_t state_at = 8 + 4 + 4 + 8;
    CHECK(refused(one, state_at, static_cast<unsigned char>(VerifyState::asked)));
    CHECK(refused(one, state_at, static_cast<unsigned char>(VerifyState::busy) + 1));
    constexpr std::size_t damaged_blocks_at = state_at + 1 + 8 + 8 + 8;
    CHECK(refused(one, damaged_blocks_at, 1));       // proved, with a damaged block
    CHECK(refused(one, damaged_blocks_at + 16, 9));  // more names than there may be, and than there are bytes
  }

  TEST_CASE("what an operator reads is cut to its bound, never refused") {
    VerifyResult result = sample_result();
    result.damaged.assign(100, {std::string(5000, 't'), 1});
    result.text = std::string(5000, 'x');
    auto decoded = decode_message(*encode_message(VerifyResults{1, {result}}, codec::MeshId{}));
    REQUIRE(decoded.has_value());
    const VerifyResult& told = std::get<VerifyResults>(*decoded).results.at(0);
    CHECK(told.damaged.size() == damaged_named_max);
    CHECK(told.damaged[0].tensor.size() < 5000);
    CHECK(told.text.size() < 5000);
    CHECK(told.damaged_blocks == result.damaged_blocks);
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
