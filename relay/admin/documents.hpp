// What the admin API says, as structs: the daemon fills them, relayctl reads them, docs/admin-api.md describes them.
//
// Layer: relay/admin, but without sockets, so that tools may use it. The type of a member decides its JSON: versions and
// epochs are strings (JavaScript's numbers end at 2^53), Time is RFC 3339 UTC, optional members are left out when empty.
// Reading ignores members it does not know and defaults those that are missing, so either side may be the newer one; a
// member of the wrong type or another schema is an error that names it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::relay::admin {

using codec::Epoch;
using codec::Version;
using Time = std::chrono::sys_time<std::chrono::milliseconds>;

struct PlanStamp {
  Epoch epoch{};
  std::string digest;  ///< hexadecimal, as `relayctl plan show` prints it
};

struct Check {
  std::string code;   ///< stable word, e.g. DISK_FULL
  std::string level;  ///< WARN or ERR
  std::string node;   ///< empty: the mesh as a whole
  std::string text;
  std::string fix;  ///< what an operator can do; may be empty
};

struct Health {
  std::string level = "OK";  ///< OK, WARN, ERR: the worst of the checks
  std::vector<Check> checks;
};

struct Committed {
  Version version{};  ///< 0: nothing is committed yet
  std::optional<Time> at;
  std::uint64_t nodes_committed = 0;
  std::uint64_t nodes_total = 0;
  std::string policy;
};

struct SlowestNode {
  std::string node;
  double percent = 0;
};

struct RegionProgress {
  std::string name;
  std::uint64_t nodes_total = 0;
  std::uint64_t nodes_up = 0;
  double received_percent = 0;  ///< of the frames known so far, mean over the region's nodes
  double applied_percent = 0;
  std::uint64_t prepared = 0;
  std::uint64_t failed = 0;
  SlowestNode slowest;
  double rate_bytes_per_second = 0;  ///< of one node, mean over those that are up
};

/// A node that a refit waits for, and what it is doing: a state of NodeRow, or the code of its failure.
struct AwaitedNode {
  std::string node;
  std::string state;
};

/// Whom a refit waits for that is encoded, and for how long.
struct Awaited {
  std::uint64_t nodes = 0;         ///< of the plan, not prepared yet
  std::vector<AwaitedNode> first;  ///< a few of them, lost and failed ones before the others
  double timeout_seconds = 0;      ///< without any progress for so long the root decides without them
};

/// The root's phases of a refit (design: OPEN → DISTRIBUTING → PREPARING → DECIDED → CLOSED).
struct InFlight {
  Version version{};
  Version base{};
  std::string phase;  ///< OPEN, DISTRIBUTING, PREPARING, DECIDED, CLOSED
  std::uint64_t dense_bytes = 0;    ///< of the whole checkpoint
  std::uint64_t scanned_bytes = 0;  ///< of it compared with the base so far
  std::uint64_t payload_bytes = 0;  ///< sent down, so far
  double changed_percent = 0;       ///< elements changed, of those scanned
  double elapsed_seconds = 0;
  std::vector<RegionProgress> regions;
  std::optional<Awaited> awaited;  ///< on the root while PREPARING
};

/// Nodes that become a version by content: new ones, others left behind, and those that take an aborted refit back.
struct Syncing {
  std::uint64_t nodes = 0;
  std::uint64_t undoing = 0;  ///< of them, those that take an aborted refit back
  double done_percent = 0;    ///< of the blocks that they lack, mean over the nodes
  SlowestNode slowest;
};

struct Problem {
  std::string code;
  std::string node;
  std::string text;
};

struct StatusDocument {
  static constexpr std::string_view schema = "deltarelay.status/1";
  Time at{};  ///< when the daemon wrote this; ages are measured against it
  std::string mesh;
  std::string node;  ///< who answers
  std::string role;  ///< root or relay
  std::string root;
  Epoch epoch{};
  std::optional<Time> started;  ///< of the process that answers
  PlanStamp plan;
  Health health;
  Committed committed;
  std::optional<InFlight> in_flight;
  std::optional<Syncing> syncing;  ///< empty: nobody syncs
  std::vector<Problem> problems;
};

struct Reason {
  std::string code;
  std::string text;
};

struct NodeRow {
  std::string name;
  std::string region;
  std::string role;  ///< root or relay
  std::uint32_t rank = 0;
  std::string planned_parent;  ///< empty for the root
  std::string actual_parent;   ///< empty for the root and for nodes without a link
  std::string state;           ///< STARTING, IDLE, SYNCING, RECEIVING, PREPARED, COMMITTING, FAILED, unreachable
  Version version{};           ///< committed; 0: none
  Version receiving_version{};  ///< 0: none
  Version undoing_version{};    ///< SYNCING: the aborted refit whose blocks are put back to `version`; 0: none
  std::uint64_t received_frames = 0;
  std::uint64_t applied_frames = 0;
  std::uint64_t total_frames = 0;  ///< 0: not known before the end of the encoding
  std::uint64_t received_bytes = 0;
  std::uint64_t sync_blocks_done = 0;  ///< while SYNCING
  std::uint64_t sync_blocks_total = 0;
  double rate_bytes_per_second = 0;
  std::optional<Reason> reason;
  bool adopted = false;  ///< attached to another parent than planned
  std::optional<Time> since;  ///< of the state
};

/// The rows of GET /v1/nodes and of GET /v1/tree.
struct NodesDocument {
  static constexpr std::string_view schema = "deltarelay.nodes/1";
  Time at{};
  std::string mesh;
  std::string root;
  Version committed_version{};
  Version in_flight_version{};  ///< 0: none
  std::vector<NodeRow> nodes;   ///< in plan order, each parent before its children
};

struct PhaseSeconds {
  double encode = 0;
  double distribute = 0;  ///< first frame sent until the policy was met: frames are applied as they arrive
  double prepare = 0;     ///< end of the encoding until the policy was met
  double commit = 0;      ///< decision to last node committed
};

struct VersionRow {
  Version version{};
  Version base{};
  std::optional<Time> at;
  std::uint64_t dense_bytes = 0;
  std::uint64_t payload_bytes = 0;
  double changed_percent = 0;
  PhaseSeconds seconds;
  std::string result;  ///< committed, aborted, first (the image the fleet started from)
  std::string why;     ///< of an abort
  std::uint64_t nodes_committed = 0;
  std::uint64_t nodes_total = 0;
  std::vector<std::string> left_out;
};

struct VersionsDocument {
  static constexpr std::string_view schema = "deltarelay.versions/1";
  Time at{};
  std::vector<VersionRow> versions;  ///< newest first
};

struct VersionDocument {
  static constexpr std::string_view schema = "deltarelay.version/1";
  Time at{};
  VersionRow version;
};

/// GET /v1/refit: the refit in flight, or the last one.
struct RefitDocument {
  static constexpr std::string_view schema = "deltarelay.refit/1";
  Time at{};
  std::optional<InFlight> refit;  ///< empty: none since the daemon started
  std::string result;             ///< empty while undecided; committed or aborted
  std::string why;                ///< of an abort
  std::uint64_t nodes_prepared = 0;
  std::uint64_t nodes_committed = 0;
  std::uint64_t nodes_failed = 0;
  std::uint64_t nodes_total = 0;
  PhaseSeconds seconds;
  std::vector<std::string> left_out;
};

struct PublishRequest {
  std::string dir;  ///< absolute path on the root's host
  std::optional<Version> version;
  std::string policy;  ///< empty: the configured one
  bool dry_run = false;
};

struct PublishDocument {
  static constexpr std::string_view schema = "deltarelay.publish/1";
  Version version{};
  Version base{};
  bool dry_run = false;
  // With dry_run only:
  std::uint64_t dense_bytes = 0;
  std::uint64_t payload_bytes = 0;
  double changed_percent = 0;
  double predicted_seconds = 0;
};

struct AbortRequest {
  Version version{};
};

struct AbortDocument {
  static constexpr std::string_view schema = "deltarelay.abort/1";
  Version version{};
};

struct VerifyRequest {
  bool deep = false;  ///< read every byte, not only sizes and the ledger
  bool wait = true;   ///< answer when nobody is waited for any more; false: at once, and GET tells the rest
};

struct DamagedPlace {
  std::string tensor;
  std::uint64_t block = 0;
};

struct VerifyRow {
  std::string node;
  std::string result;  ///< ok, damaged, failed, busy, unreachable; empty: not known yet
  Version version{};
  std::uint64_t checked_bytes = 0;  ///< read and hashed
  std::uint64_t damaged_blocks = 0;
  double seconds = 0;
  std::string text;  ///< the first damaged place, or why there is no result
  std::string state = {};  ///< ASKED, WAITING, READING, DONE, unreachable
  std::uint64_t total_bytes = 0;
  std::vector<DamagedPlace> damaged = {};  ///< the first few
};

struct VerifyDocument {
  static constexpr std::string_view schema = "deltarelay.verify/1";
  Time at{};
  std::string round;  ///< which one this is about
  std::optional<Time> began;
  bool done = true;  ///< nobody is waited for any more
  bool deep = false;
  std::vector<VerifyRow> nodes;
};

struct ErrorDocument {
  static constexpr std::string_view schema = "deltarelay.error/1";
  std::string what;
  std::string why;
  std::string try_next;  ///< member "try"
  int exit_code = 1;     ///< relayctl's, see docs/admin-api.md
};

/// JSON text without line breaks. Documents carry their schema, requests have none.
[[nodiscard]] std::string to_json(const StatusDocument& document);
[[nodiscard]] std::string to_json(const NodesDocument& document);
[[nodiscard]] std::string to_json(const VersionsDocument& document);
[[nodiscard]] std::string to_json(const VersionDocument& document);
[[nodiscard]] std::string to_json(const RefitDocument& document);
[[nodiscard]] std::string to_json(const PublishRequest& request);
[[nodiscard]] std::string to_json(const PublishDocument& document);
[[nodiscard]] std::string to_json(const AbortRequest& request);
[[nodiscard]] std::string to_json(const AbortDocument& document);
[[nodiscard]] std::string to_json(const VerifyRequest& request);
[[nodiscard]] std::string to_json(const VerifyDocument& document);
[[nodiscard]] std::string to_json(const ErrorDocument& document);

/// Fills `out` from JSON text. An empty string on success, else what is wrong and where, for example
/// `committed.version: not a 64-bit number in a string`; `out` is then half filled.
[[nodiscard]] std::string from_json(std::string_view text, StatusDocument& out);
[[nodiscard]] std::string from_json(std::string_view text, NodesDocument& out);
[[nodiscard]] std::string from_json(std::string_view text, VersionsDocument& out);
[[nodiscard]] std::string from_json(std::string_view text, VersionDocument& out);
[[nodiscard]] std::string from_json(std::string_view text, RefitDocument& out);
[[nodiscard]] std::string from_json(std::string_view text, PublishRequest& out);
[[nodiscard]] std::string from_json(std::string_view text, PublishDocument& out);
[[nodiscard]] std::string from_json(std::string_view text, AbortRequest& out);
[[nodiscard]] std::string from_json(std::string_view text, AbortDocument& out);
[[nodiscard]] std::string from_json(std::string_view text, VerifyRequest& out);
[[nodiscard]] std::string from_json(std::string_view text, VerifyDocument& out);
[[nodiscard]] std::string from_json(std::string_view text, ErrorDocument& out);

/// 2026-01-31T14:02:07.250Z; the fraction is left out when it is zero.
[[nodiscard]] std::string time_text(Time at);
[[nodiscard]] std::optional<Time> parse_time_text(std::string_view text);

/// The same JSON with two spaces a level, for people; the text itself when it is no JSON.
[[nodiscard]] std::string indented_json(std::string_view text);

}  // namespace deltarelay::relay::admin
