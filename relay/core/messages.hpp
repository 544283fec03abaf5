// The link messages of one hop: what a child and its parent say to each other beside the log's records.
//
// Each travels as the payload of a record of type >= 0x100 (codec/record.hpp), unsigned, guarded by TLS. Encoding and decoding
// are pure; decode() refuses truncated, left-over and over-long input. Normative text: ARCHITECTURE.md, "Link messages".
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "codec/digest.hpp"
#include "codec/errc.hpp"
#include "codec/record.hpp"
#include "relay/core/node_record.hpp"
#include "relay/core/verify_messages.hpp"

namespace deltarelay::relay {

enum class MessageType : std::uint16_t {
  hello = 0x101,
  welcome = 0x102,
  heartbeat = 0x103,
  report = 0x104,
  ask_again = 0x105,
  resume = 0x106,
  closing = 0x107,
  sync_manifest_request = 0x110,
  sync_manifest = 0x111,
  sync_digests = 0x112,
  sync_blocks_request = 0x113,
  sync_blocks = 0x114,
  sync_unavailable = 0x115,
  sync_file = 0x116,
  verify_order = 0x120,
  verify_results = 0x121,
};

/// Where a reader of a refit's log stands: the next record it needs.
struct LogPosition {
  Version version{};
  Sequence sequence{};
  friend auto operator<=>(const LogPosition&, const LogPosition&) = default;
};

/// The same, with the epoch in which that refit was begun: with it a parent sees whether it means the same refit.
struct ResumePoint {
  LogPosition next;
  Epoch begun{};
  friend bool operator==(const ResumePoint&, const ResumePoint&) = default;
};

/// First message of a child.
struct Hello {
  std::string node;
  std::uint64_t boot_id = 0, attach_sequence = 0;
  std::uint32_t rank = 0;
  Epoch epoch{};         ///< highest epoch known
  Version committed{};   ///< 0: no whole image
  codec::Digest image;   ///< of `committed`
  Epoch image_epoch{};   ///< that its END was sealed in
  ResumePoint resume;    ///< next record needed; version 0: whatever follows `committed`
  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class Mode : std::uint8_t {
  stream = 0,  ///< the log follows from the child's position
  sync = 1,    ///< the child must block-sync first, then send Resume
};

/// The parent's answer.
struct Welcome {
  std::string node;
  std::uint64_t boot_id = 0;
  std::uint32_t rank = 0;
  Epoch epoch{};
  Version committed{};
  codec::Digest image;
  Mode mode{};
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Heartbeat {
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

/// Newest records of nodes of the sender's subtree.
struct Report {
  std::vector<NodeRecord> records;
  friend bool operator==(const Report&, const Report&) = default;
};

/// The child needs the log again from here (a record was missing or refused).
struct AskAgain {
  LogPosition from;
  friend bool operator==(const AskAgain&, const AskAgain&) = default;
};

/// Sent when block sync has ended: stream from here.
struct Resume {
  Version committed{};
  codec::Digest image;  ///< of `committed`
  ResumePoint from;
  friend bool operator==(const Resume&, const Resume&) = default;
};

/// Why the sender is about to close.
struct Closing {
  std::string code, text;
  friend bool operator==(const Closing&, const Closing&) = default;
};

struct SyncManifestRequest {
  friend bool operator==(const SyncManifestRequest&, const SyncManifestRequest&) = default;
};

/// The root-signed LAYOUT and END records of the sender's committed version, as raw record bytes.
struct SyncManifest {
  std::vector<std::byte> layout_record, end_record;
  friend bool operator==(const SyncManifest&, const SyncManifest&) = default;
};

/// A piece of the digest table of that version, in order.
struct SyncDigests {
  std::uint64_t first = 0;
  std::vector<codec::Digest> digests;
  friend bool operator==(const SyncDigests&, const SyncDigests&) = default;
};

/// Blocks wanted, by ordinal, ascending.
struct SyncBlocksRequest {
  std::vector<std::uint64_t> ordinals;
  friend bool operator==(const SyncBlocksRequest&, const SyncBlocksRequest&) = default;
};

/// A FRAME payload (codec/frame.hpp) whose blocks need no base.
struct SyncBlocks {
  std::vector<std::byte> frame_payload;
  friend bool operator==(const SyncBlocks&, const SyncBlocks&) = default;
};

/// These blocks cannot be served now (their content here is of another version).
struct SyncUnavailable {
  std::vector<std::uint64_t> ordinals;
  friend bool operator==(const SyncUnavailable&, const SyncUnavailable&) = default;
};

/// A FILE payload (codec/payloads.hpp) of one companion file; the manifest's END names them with their SHA-256.
struct SyncFile {
  std::vector<std::byte> file_payload;
  friend bool operator==(const SyncFile&, const SyncFile&) = default;
};

using Message = std::variant<Hello, Welcome, Heartbeat, Report, AskAgain, Resume, Closing, SyncManifestRequest, SyncManifest,
                             SyncDigests, SyncBlocksRequest, SyncBlocks, SyncUnavailable, SyncFile, VerifyOrder, VerifyResults>;

[[nodiscard]] codec::RecordPtr encode_message(const Message& message, const codec::MeshId& mesh);
/// Errors: unknown_record_type (skip it), truncated, trailing_bytes, malformed_payload.
[[nodiscard]] codec::Result<Message> decode_message(const codec::Record& record);

inline constexpr std::size_t report_records_max = 4096;
inline constexpr std::size_t sync_digests_per_message = 65536;
inline constexpr std::size_t sync_blocks_per_request_max = 1024;

}  // namespace deltarelay::relay
