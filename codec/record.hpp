// The one record format of wire, log, object and file: a fixed header of 160 bytes, then the payload.
//
//   0        4      6      8     10     12      14        16       32     40       48        56            60
//   | magic  | major| minor| type| flags| stripe| reserved| mesh id| epoch| version| sequence| payload_bytes| reserved|
//   64                      96                        160
//   | SHA-256 of the payload | Ed25519 over bytes 0..95 | payload ...
//
// Normative text: FORMAT.md, "Record". Little-endian, written field by field. Log records (type < 0x100) are signed by
// the root; link messages (type >= 0x100) live for one hop, are guarded by TLS, and have signature and SHA-256 all
// zero.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/errc.hpp"
#include "codec/signature.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

inline constexpr std::uint32_t record_magic = 0x594c5244;  // "DRLY"
inline constexpr std::uint16_t format_major = 1;
inline constexpr std::uint16_t format_minor = 0;
inline constexpr std::size_t record_header_bytes = 160;
inline constexpr std::size_t record_signed_bytes = 96;

enum class RecordType : std::uint16_t {
  // log records, signed
  begin = 1,   ///< BeginPayload: opens a refit
  frame = 2,   ///< frame.hpp: new content of blocks
  file = 3,    ///< FilePayload: one small non-tensor file
  end = 4,     ///< EndPayload: closes one stripe; the whole new image's digest
  commit = 5,  ///< decision, no payload
  abort = 6,   ///< decision, payload: reason text
  plan = 7,    ///< topology plan (reserved for the planner)
  layout = 8,  ///< LayoutPayload: what a host with no image needs to make one
  // link messages, one hop, unsigned
  link_first = 0x100,
};

enum class RecordFlag : std::uint16_t { is_signed = 1 };

struct RecordHeader {
  std::uint16_t minor = format_minor;
  RecordType type{};
  std::uint16_t flags = 0;
  StripeId stripe{};
  MeshId mesh;
  Epoch epoch{};
  Version version{};
  Sequence sequence{};
  std::uint32_t payload_bytes = 0;
  Sha256 payload_sha256{};
  Signature signature{};

  [[nodiscard]] bool is_log_record() const noexcept { return type < RecordType::link_first; }
  [[nodiscard]] bool is_signed() const noexcept {
    return (flags & static_cast<std::uint16_t>(RecordFlag::is_signed)) != 0;
  }
  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};

/// Largest payload that a record of this type may carry (limits.hpp).
[[nodiscard]] std::size_t payload_bytes_max(RecordType type) noexcept;

void encode_record_header(const RecordHeader& header, std::span<std::byte, record_header_bytes> out) noexcept;

/// Decodes and checks one header: magic, major version, reserved fields, payload limit. Allocates nothing, checks no
/// signature. `in` may be longer than a header. Errors: truncated, bad_magic, major_version_unsupported,
/// reserved_not_zero, payload_too_large. A type unknown to this release is not an error here: skip it by its length.
[[nodiscard]] Result<RecordHeader> decode_record_header(Bytes in) noexcept;

/// One whole record as it travels: immutable once made, shared between log, links and applier.
struct Record {
  RecordHeader header;
  std::vector<std::byte> bytes;  ///< header and payload, exactly as on the wire

  [[nodiscard]] Bytes payload() const noexcept { return Bytes(bytes).subspan(record_header_bytes); }
};
using RecordPtr = std::shared_ptr<const Record>;

/// Builds and signs a log record. `signer` null: an unsigned record for offline files, which no daemon accepts.
/// REQUIRES payload.size() <= payload_bytes_max(header.type). Fills payload_bytes, SHA-256, flags and signature.
[[nodiscard]] RecordPtr seal_record(RecordHeader header, Bytes payload, const ContentSigner* signer);

/// Builds a link message (no SHA-256, no signature).
[[nodiscard]] RecordPtr make_link_message(RecordHeader header, Bytes payload);

/// Everything that must hold before a log record is stored, passed on or decoded, in this order: mesh, signature over
/// the header, payload length, payload SHA-256. Errors: mesh_mismatch, not_signed, signature_invalid, truncated,
/// payload_digest_mismatch. Pure and thread-safe; costs one SHA-256 of the payload: call it off the I/O threads.
[[nodiscard]] Result<void> verify_record(const Record& record, const MeshId& mesh, const ContentVerifier& verifier);

/// Header only: mesh and signature, so that length and type may be trusted before the payload is read.
[[nodiscard]] Result<void> verify_record_header(const RecordHeader& header, Bytes header_bytes, const MeshId& mesh,
                                                const ContentVerifier& verifier);

/// Payload only: length and SHA-256 against the header. All that can be asked of an unsigned offline file.
[[nodiscard]] Result<void> verify_record_payload(const Record& record);

}  // namespace deltarelay::codec
