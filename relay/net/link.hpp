// One established TLS connection that carries records both ways; all that the core's shell sees of the network.
//
//   peer bytes -> header (160) -> check -> budget -> payload in pieces -> SHA-256 on the CPU pool -> on_record, in order
//   send() -> lane control | lane data -> coalesced writes -> on_sent
//
// Threads: send(), close() and the getters may be called from anywhere. Handlers are posted to LinkEnvironment::handlers (the
// core strand), in order, never after on_end, and on_end comes exactly once. Internally everything is on one strand per link.
// A link lives while its tasks run or somebody holds it; dropping the pointer does not close it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "codec/limits.hpp"
#include "codec/record.hpp"
#include "codec/signature.hpp"
#include "relay/net/byte_budget.hpp"
#include "relay/net/peer_identity.hpp"
#include "relay/net/task_group.hpp"

namespace deltarelay::relay::net {

enum class Lane : std::uint8_t { control, data };

enum class EndReason : std::uint8_t {
  closed_here,      ///< close() was called; the detail is its reason
  closed_by_peer,   ///< an orderly end (close_notify) between two records
  truncated,        ///< the connection ended inside a record, or without close_notify
  reset,            ///< the peer or the network cut it off (RST, unreachable)
  refused_by_peer,  ///< the peer sent a TLS alert, such as: our certificate is not accepted
  silent,           ///< no byte came for dead_after
  no_progress,      ///< a pending write moved no byte for progress_after
  bad_record,       ///< bytes that are no record of this protocol, or a link message of another mesh
  send_queue_full,  ///< more was sent than the bound allows: the sender's window does not work
  tls_failed,       ///< any other failure of TLS
  stopped,          ///< this process is stopping
  internal_error,   ///< an exception; its text is the detail
};
[[nodiscard]] std::string_view code(EndReason why) noexcept;

struct LinkEnd {
  EndReason why{};
  std::string detail;
};

/// Judges a header before its payload is read. Called on the link's strand, from several links at once: thread-safe.
using HeaderCheck = std::function<codec::Result<void>(const codec::RecordHeader&, codec::Bytes header_bytes)>;
/// Log records must be of `mesh` and signed by `verifier`'s key; link messages must be of `mesh`.
[[nodiscard]] HeaderCheck signed_records_of(const codec::MeshId& mesh, codec::ContentVerifier verifier);

struct LinkConfig {
  std::chrono::steady_clock::duration dead_after = std::chrono::seconds(5);       ///< peers send a heartbeat each second
  std::chrono::steady_clock::duration progress_after = std::chrono::seconds(30);  ///< for a pending write
  std::chrono::steady_clock::duration close_within = std::chrono::seconds(2);     ///< flush and shutdown, after close()
  /// Both lanes together. The core's window is smaller; this is the bound for when it is wrong. One record is always let in.
  std::size_t send_queue_bytes_max = 256 * codec::mib;
  std::size_t verifying_records_max = 4;  ///< records read and not yet verified or delivered
  /// New TLS keys after so many bytes sent: an AES-GCM key is good for 388 GB (RFC 8446, 5.5), a first sync may be 2 TB.
  std::uint64_t rekey_after_bytes = 64 * codec::gib;
};

/// What links share; all of it must outlive them.
struct LinkEnvironment {
  boost::asio::any_io_executor io;        ///< of the I/O threads; links make their strands on it
  boost::asio::any_io_executor handlers;  ///< the core strand
  boost::asio::any_io_executor cpu;       ///< the pool that computes SHA-256; must run until `tasks` has stopped
  ByteBudget* budget = nullptr;
  TaskGroup* tasks = nullptr;
  HeaderCheck check;
  LinkConfig config;
};

struct LinkHandlers {
  /// A record whose checks hold. `hold` is its share of the budget: keep it for as long as the record waits for the log,
  /// drop it at once when nothing waits. (Not tied to the record itself, or a slow child would brake the parent.)
  std::function<void(codec::RecordPtr record, ByteHold hold)> on_record;
  /// A log record that was dropped: its signature, mesh or SHA-256 does not hold. The link lives on.
  std::function<void(codec::RecordHeader header, codec::error_code why)> on_rejected;
  /// So many queued bytes of a lane have been handed to the kernel.
  std::function<void(std::uint64_t bytes, Lane lane)> on_sent;
  std::function<void(LinkEnd end)> on_end;
};

struct LinkCounts {
  std::uint64_t received_bytes = 0;  ///< on the wire, TLS included
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_records = 0;
  std::uint64_t rejected_records = 0;
};

class Link {
 public:
  virtual ~Link() = default;

  /// Once, before anything else happens. Handlers that are empty are not called.
  virtual void start(LinkHandlers handlers) = 0;
  /// Queues; nothing happens after the end. Control goes before data, each lane in order.
  virtual void send(codec::RecordPtr record, Lane lane) = 0;
  /// Sends what is queued, then ends in order; never takes longer than close_within.
  virtual void close(std::string reason) = 0;

  [[nodiscard]] virtual const PeerIdentity& peer() const noexcept = 0;
  /// "127.0.0.1:41234"
  [[nodiscard]] virtual const std::string& remote_address() const noexcept = 0;
  [[nodiscard]] virtual LinkCounts counts() const = 0;
};

}  // namespace deltarelay::relay::net
