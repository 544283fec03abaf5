#include "relay/core/messages.hpp"

#include <cassert>

#include "codec/bytes.hpp"
#include "codec/limits.hpp"

namespace deltarelay::relay {
namespace {

using codec::ByteReader;
using codec::ByteWriter;
using codec::raw;

constexpr std::size_t name_bytes_max = 256;
constexpr std::size_t text_bytes_max = 1024;
constexpr std::size_t node_record_bytes_min = 122;

template <class T>
constexpr MessageType type_of() {
  if constexpr (std::is_same_v<T, Hello>) return MessageType::hello;
  if constexpr (std::is_same_v<T, Welcome>) return MessageType::welcome;
  if constexpr (std::is_same_v<T, Heartbeat>) return MessageType::heartbeat;
  if constexpr (std::is_same_v<T, Report>) return MessageType::report;
  if constexpr (std::is_same_v<T, AskAgain>) return MessageType::ask_again;
  if constexpr (std::is_same_v<T, Resume>) return MessageType::resume;
  if constexpr (std::is_same_v<T, Closing>) return MessageType::closing;
  if constexpr (std::is_same_v<T, SyncManifestRequest>) return MessageType::sync_manifest_request;
  if constexpr (std::is_same_v<T, SyncManifest>) return MessageType::sync_manifest;
  if constexpr (std::is_same_v<T, SyncDigests>) return MessageType::sync_digests;
  if constexpr (std::is_same_v<T, SyncBlocksRequest>) return MessageType::sync_blocks_request;
  if constexpr (std::is_same_v<T, SyncBlocks>) return MessageType::sync_blocks;
  if constexpr (std::is_same_v<T, SyncUnavailable>) return MessageType::sync_unavailable;
  if constexpr (std::is_same_v<T, SyncFile>) return MessageType::sync_file;
  if constexpr (std::is_same_v<T, VerifyOrder>) return MessageType::verify_order;
  if constexpr (std::is_same_v<T, VerifyResults>) return MessageType::verify_results;
}

/// What an operator reads may be cut, never refused: a name or reason that is too long loses its end.
std::string_view cut(std::string_view text, std::size_t max) { return text.substr(0, max); }

// ------------------------------------------------------------------------------------------------ encode

void put(ByteWriter& out, const LogPosition& position) {
  out.u64(raw(position.version));
  out.u64(raw(position.sequence));
}

void put(ByteWriter& out, const ResumePoint& point) {
  put(out, point.next);
  out.u64(raw(point.begun));
}

void put(ByteWriter& out, const std::vector<std::uint64_t>& ordinals) {
  out.u32(static_cast<std::uint32_t>(ordinals.size()));
  for (std::uint64_t ordinal : ordinals) out.u64(ordinal);
}

void put(ByteWriter& out, const NodeRecord& record) {
  out.sized_string(cut(record.name, name_bytes_max));
  out.sized_string(cut(record.parent, name_bytes_max));
  out.u64(record.boot_id);
  out.u64(record.attach_sequence);
  out.u64(record.report_sequence);
  out.u32(record.rank);
  out.u8(static_cast<std::uint8_t>(record.state));
  out.u64(raw(record.committed));
  out.digest(record.image);
  out.u64(raw(record.receiving));
  out.digest(record.target);
  out.u64(record.frames_received);
  out.u64(record.frames_applied);
  out.u64(record.frames_total);
  out.u64(record.received_bytes);
  out.u64(record.sync_blocks_total);
  out.u64(record.sync_blocks_done);
  out.u8(record.reachable ? 1 : 0);
  out.u8(record.retryable ? 1 : 0);
  out.sized_string(cut(record.reason_code, name_bytes_max));
  out.sized_string(cut(record.reason_text, text_bytes_max));
}

void put(ByteWriter& out, const Hello& m) {
  out.sized_string(m.node);
  out.u64(m.boot_id);
  out.u64(m.attach_sequence);
  out.u32(m.rank);
  out.u64(raw(m.epoch));
  out.u64(raw(m.committed));
  out.digest(m.image);
  out.u64(raw(m.image_epoch));
  put(out, m.resume);
}

void put(ByteWriter& out, const Welcome& m) {
  out.sized_string(m.node);
  out.u64(m.boot_id);
  out.u32(m.rank);
  out.u64(raw(m.epoch));
  out.u64(raw(m.committed));
  out.digest(m.image);
  out.u8(static_cast<std::uint8_t>(m.mode));
}

void put(ByteWriter&, const Heartbeat&) {}
void put(ByteWriter&, const SyncManifestRequest&) {}
void put(ByteWriter& out, const Report& m) {
  assert(m.records.size() <= report_records_max);
  out.u32(static_cast<std::uint32_t>(m.records.size()));
  for (const NodeRecord& record : m.records) put(out, record);
}
void put(ByteWriter& out, const AskAgain& m) { put(out, m.from); }
void put(ByteWriter& out, const Resume& m) {
  out.u64(raw(m.committed));
  out.digest(m.image);
  put(out, m.from);
}
void put(ByteWriter& out, const Closing& m) {
  out.sized_string(cut(m.code, name_bytes_max));
  out.sized_string(cut(m.text, text_bytes_max));
}
void put(ByteWriter& out, const SyncManifest& m) {
  out.sized_bytes(m.layout_record);
  out.sized_bytes(m.end_record);
}
void put(ByteWriter& out, const SyncDigests& m) {
  assert(m.digests.size() <= sync_digests_per_message);
  out.u64(m.first);
  out.u32(static_cast<std::uint32_t>(m.digests.size()));
  for (const codec::Digest& digest : m.digests) out.digest(digest);
}
void put(ByteWriter& out, const SyncBlocksRequest& m) { put(out, m.ordinals); }
void put(ByteWriter& out, const SyncBlocks& m) { out.bytes(m.frame_payload); }
void put(ByteWriter& out, const SyncUnavailable& m) { put(out, m.ordinals); }
void put(ByteWriter& out, const SyncFile& m) { out.bytes(m.file_payload); }

// ------------------------------------------------------------------------------------------------ decode

bool flag(ByteReader& in) {
  const std::uint8_t value = in.u8();
  in.require(value <= 1);
  return value == 1;
}

void get(ByteReader& in, LogPosition& position) {
  position.version = Version{in.u64()};
  position.sequence = Sequence{in.u64()};
}

void get(ByteReader& in, ResumePoint& point) {
  get(in, point.next);
  point.begun = Epoch{in.u64()};
}

void get(ByteReader& in, std::vector<std::uint64_t>& ordinals) {
  const std::size_t count = in.count(8, sync_blocks_per_request_max);
  ordinals.reserve(count);
  for (std::size_t i = 0; i < count; ++i) ordinals.push_back(in.u64());
}

void get(ByteReader& in, std::vector<std::byte>& bytes, std::size_t max) {
  const codec::Bytes part = in.sized_bytes(max);
  bytes.assign(part.begin(), part.end());
}

void get_rest(ByteReader& in, std::vector<std::byte>& bytes) {
  const codec::Bytes rest = in.bytes(in.remaining());
  bytes.assign(rest.begin(), rest.end());
}

void get(ByteReader& in, NodeRecord& record) {
  record.name = in.sized_string(name_bytes_max);
  record.parent = in.sized_string(name_bytes_max);
  record.boot_id = in.u64();
  record.attach_sequence = in.u64();
  record.report_sequence = in.u64();
  record.rank = in.u32();
  const std::uint8_t state = in.u8();
  in.require(state <= static_cast<std::uint8_t>(NodeState::failed));
  record.state = static_cast<NodeState>(state);
  record.committed = Version{in.u64()};
  record.image = in.digest();
  record.receiving = Version{in.u64()};
  record.target = in.digest();
  record.frames_received = in.u64();
  record.frames_applied = in.u64();
  record.frames_total = in.u64();
  record.received_bytes = in.u64();
  record.sync_blocks_total = in.u64();
  record.sync_blocks_done = in.u64();
  record.reachable = flag(in);
  record.retryable = flag(in);
  record.reason_code = in.sized_string(name_bytes_max);
  record.reason_text = in.sized_string(text_bytes_max);
}

void get(ByteReader& in, Hello& m) {
  m.node = in.sized_string(name_bytes_max);
  m.boot_id = in.u64();
  m.attach_sequence = in.u64();
  m.rank = in.u32();
  m.epoch = Epoch{in.u64()};
  m.committed = Version{in.u64()};
  m.image = in.digest();
  m.image_epoch = Epoch{in.u64()};
  get(in, m.resume);
}

void get(ByteReader& in, Welcome& m) {
  m.node = in.sized_string(name_bytes_max);
  m.boot_id = in.u64();
  m.rank = in.u32();
  m.epoch = Epoch{in.u64()};
  m.committed = Version{in.u64()};
  m.image = in.digest();
  const std::uint8_t mode = in.u8();
  in.require(mode <= 1);
  m.mode = static_cast<Mode>(mode);
}

void get(ByteReader&, Heartbeat&) {}
void get(ByteReader&, SyncManifestRequest&) {}
void get(ByteReader& in, Report& m) {
  const std::size_t count = in.count(node_record_bytes_min, report_records_max);
  m.records.resize(count);
  for (NodeRecord& record : m.records) get(in, record);
}
void get(ByteReader& in, AskAgain& m) { get(in, m.from); }
void get(ByteReader& in, Resume& m) {
  m.committed = Version{in.u64()};
  m.image = in.digest();
  get(in, m.from);
}
void get(ByteReader& in, Closing& m) {
  m.code = in.sized_string(name_bytes_max);
  m.text = in.sized_string(text_bytes_max);
}
void get(ByteReader& in, SyncManifest& m) {
  get(in, m.layout_record, codec::record_payload_bytes_max);
  get(in, m.end_record, codec::record_payload_bytes_max);
}
void get(ByteReader& in, SyncDigests& m) {
  m.first = in.u64();
  const std::size_t count = in.count(16, sync_digests_per_message);
  m.digests.resize(count);
  for (codec::Digest& digest : m.digests) digest = in.digest();
}
void get(ByteReader& in, SyncBlocksRequest& m) { get(in, m.ordinals); }
void get(ByteReader& in, SyncBlocks& m) { get_rest(in, m.frame_payload); }
void get(ByteReader& in, SyncUnavailable& m) { get(in, m.ordinals); }
void get(ByteReader& in, SyncFile& m) { get_rest(in, m.file_payload); }

template <class T>
codec::Result<Message> decode_as(codec::Bytes payload) {
  ByteReader in(payload);
  T message;
  get(in, message);
  if (auto finished = in.finish(); !finished) return finished.error();
  return Message{std::move(message)};
}

}  // namespace

codec::RecordPtr encode_message(const Message& message, const codec::MeshId& mesh) {
  std::vector<std::byte> payload;
  ByteWriter out(payload);
  codec::RecordHeader header;
  header.mesh = mesh;
  std::visit(
      [&](const auto& m) {
        header.type = static_cast<codec::RecordType>(type_of<std::decay_t<decltype(m)>>());
        put(out, m);
      },
      message);
  return codec::make_link_message(header, payload);
}

codec::Result<Message> decode_message(const codec::Record& record) {
  switch (static_cast<MessageType>(record.header.type)) {
    case MessageType::hello: return decode_as<Hello>(record.payload());
    case MessageType::welcome: return decode_as<Welcome>(record.payload());
    case MessageType::heartbeat: return decode_as<Heartbeat>(record.payload());
    case MessageType::report: return decode_as<Report>(record.payload());
    case MessageType::ask_again: return decode_as<AskAgain>(record.payload());
    case MessageType::resume: return decode_as<Resume>(record.payload());
    case MessageType::closing: return decode_as<Closing>(record.payload());
    case MessageType::sync_manifest_request: return decode_as<SyncManifestRequest>(record.payload());
    case MessageType::sync_manifest: return decode_as<SyncManifest>(record.payload());
    case MessageType::sync_digests: return decode_as<SyncDigests>(record.payload());
    case MessageType::sync_blocks_request: return decode_as<SyncBlocksRequest>(record.payload());
    case MessageType::sync_blocks: return decode_as<SyncBlocks>(record.payload());
    case MessageType::sync_unavailable: return decode_as<SyncUnavailable>(record.payload());
    case MessageType::sync_file: return decode_as<SyncFile>(record.payload());
    case MessageType::verify_order: return decode_as<VerifyOrder>(record.payload());
    case MessageType::verify_results: return decode_as<VerifyResults>(record.payload());
  }
  return codec::errc::unknown_record_type;
}

}  // namespace deltarelay::relay
