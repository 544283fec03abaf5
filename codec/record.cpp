// Records: header fields to bytes and back, sealing and verifying. Format: FORMAT.md, "Record".
#include "codec/record.hpp"

#include <algorithm>
#include <cassert>

#include "codec/bytes.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

// FORMAT.md, "Record": the offset of each field.
constexpr std::size_t at_magic = 0, at_major = 4, at_minor = 6, at_type = 8, at_flags = 10, at_stripe = 12;
constexpr std::size_t at_reserved_a = 14, at_mesh = 16, at_epoch = 32, at_version = 40, at_sequence = 48;
constexpr std::size_t at_payload_bytes = 56, at_reserved_b = 60, at_sha256 = 64, at_signature = record_signed_bytes;
static_assert(at_sha256 + sizeof(Sha256) == record_signed_bytes);
static_assert(at_signature + sizeof(Signature) == record_header_bytes);

// Small records: decisions and BEGIN. END also lists the companion files.
constexpr std::size_t small_payload_bytes_max = 64 * kib;
constexpr std::size_t end_payload_bytes_max = 4 * mib;

constexpr auto flag_signed = static_cast<std::uint16_t>(RecordFlag::is_signed);

template <std::size_t N>
bool all_zero(const std::array<std::byte, N>& bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

RecordPtr assemble(const RecordHeader& header, Bytes payload) {
  auto record = std::make_shared<Record>();
  record->header = header;
  record->bytes.reserve(record_header_bytes + payload.size());
  record->bytes.resize(record_header_bytes);
  encode_record_header(header, std::span<std::byte, record_header_bytes>(record->bytes.data(), record_header_bytes));
  record->bytes.insert(record->bytes.end(), payload.begin(), payload.end());
  return record;
}

}  // namespace

std::size_t payload_bytes_max(RecordType type) noexcept {
  switch (type) {
    case RecordType::begin:
    case RecordType::commit:
    case RecordType::abort:
      return small_payload_bytes_max;
    case RecordType::frame:
      return frame_payload_bytes_max;
    case RecordType::file:
      return file_payload_bytes_max;
    case RecordType::end:
      return end_payload_bytes_max;
    case RecordType::plan:
    case RecordType::layout:
      return table_payload_bytes_max;
    case RecordType::link_first:
      break;
  }
  return record_payload_bytes_max;
}

void encode_record_header(const RecordHeader& header, std::span<std::byte, record_header_bytes> out) noexcept {
  std::byte* p = out.data();
  store_le(p + at_magic, record_magic);
  store_le(p + at_major, format_major);
  store_le(p + at_minor, header.minor);
  store_le(p + at_type, static_cast<std::uint16_t>(header.type));
  store_le(p + at_flags, header.flags);
  store_le(p + at_stripe, raw(header.stripe));
  store_le(p + at_reserved_a, std::uint16_t{0});
  std::ranges::copy(header.mesh.bytes, p + at_mesh);
  store_le(p + at_epoch, raw(header.epoch));
  store_le(p + at_version, raw(header.version));
  store_le(p + at_sequence, raw(header.sequence));
  store_le(p + at_payload_bytes, header.payload_bytes);
  store_le(p + at_reserved_b, std::uint32_t{0});
  std::ranges::copy(header.payload_sha256, p + at_sha256);
  std::ranges::copy(header.signature, p + at_signature);
}

Result<RecordHeader> decode_record_header(Bytes in) noexcept {
  // The magic is judged as soon as it is there: "not ours at all" is a better answer than "too short".
  if (in.size() >= sizeof record_magic && load_le<std::uint32_t>(in.data()) != record_magic) return errc::bad_magic;
  if (in.size() < record_header_bytes) return errc::truncated;
  const std::byte* p = in.data();
  if (load_le<std::uint16_t>(p + at_major) != format_major) return errc::major_version_unsupported;

  RecordHeader header;
  header.minor = load_le<std::uint16_t>(p + at_minor);
  header.type = static_cast<RecordType>(load_le<std::uint16_t>(p + at_type));
  header.flags = load_le<std::uint16_t>(p + at_flags);
  header.stripe = StripeId{load_le<std::uint16_t>(p + at_stripe)};
  std::copy_n(p + at_mesh, header.mesh.bytes.size(), header.mesh.bytes.begin());
  header.epoch = Epoch{load_le<std::uint64_t>(p + at_epoch)};
  header.version = Version{load_le<std::uint64_t>(p + at_version)};
  header.sequence = Sequence{load_le<std::uint64_t>(p + at_sequence)};
  header.payload_bytes = load_le<std::uint32_t>(p + at_payload_bytes);
  std::copy_n(p + at_sha256, header.payload_sha256.size(), header.payload_sha256.begin());
  std::copy_n(p + at_signature, header.signature.size(), header.signature.begin());

  if (load_le<std::uint16_t>(p + at_reserved_a) != 0 || load_le<std::uint32_t>(p + at_reserved_b) != 0) {
    return errc::reserved_not_zero;
  }
  if ((header.flags & ~flag_signed) != 0) return errc::reserved_not_zero;
  // What is not signed has no signature; a link message has neither signature nor digest.
  if (!header.is_signed() && !all_zero(header.signature)) return errc::reserved_not_zero;
  if (!header.is_log_record() && (header.is_signed() || !all_zero(header.payload_sha256)))
    return errc::reserved_not_zero;
  if (header.payload_bytes > payload_bytes_max(header.type)) return errc::payload_too_large;
  return header;
}

RecordPtr seal_record(RecordHeader header, Bytes payload, const ContentSigner* signer) {
  assert(header.is_log_record());
  assert(payload.size() <= payload_bytes_max(header.type));
  header.flags = signer != nullptr ? flag_signed : std::uint16_t{0};
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_sha256 = sha256_of(payload);
  header.signature = {};
  if (signer != nullptr) {
    std::array<std::byte, record_header_bytes> bytes;
    encode_record_header(header, bytes);
    header.signature = signer->sign(Bytes(bytes).first(record_signed_bytes));
  }
  return assemble(header, payload);
}

RecordPtr make_link_message(RecordHeader header, Bytes payload) {
  assert(!header.is_log_record());
  assert(payload.size() <= payload_bytes_max(header.type));
  header.flags = 0;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_sha256 = {};
  header.signature = {};
  return assemble(header, payload);
}

Result<void> verify_record_header(const RecordHeader& header, Bytes header_bytes, const MeshId& mesh,
                                  const ContentVerifier& verifier) {
  if (header_bytes.size() < record_header_bytes) return errc::truncated;
  if (header.mesh != mesh) return errc::mesh_mismatch;
  if (!header.is_signed()) return errc::not_signed;
  if (!verifier.verify(header_bytes.first(record_signed_bytes), header.signature)) return errc::signature_invalid;
  return {};
}

Result<void> verify_record_payload(const Record& record) {
  if (record.bytes.size() != record_header_bytes + std::size_t{record.header.payload_bytes}) return errc::truncated;
  if (sha256_of(record.payload()) != record.header.payload_sha256) return errc::payload_digest_mismatch;
  return {};
}

Result<void> verify_record(const Record& record, const MeshId& mesh, const ContentVerifier& verifier) {
  if (auto header = verify_record_header(record.header, record.bytes, mesh, verifier); !header) return header.error();
  return verify_record_payload(record);
}

}  // namespace deltarelay::codec
