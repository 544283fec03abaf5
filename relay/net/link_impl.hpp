// The one implementation of Link. Internal to relay/net: listener and connector make it, everybody else sees link.hpp.
//
// One task, run(), owns three loops on the link's strand: reading (link_reader.cpp), writing (link_writer.cpp) and
// watching the clock (link.cpp). The first loop to end ends the link: the others are cancelled, and run() closes in
// order. Invariant: all members below "strand" are touched on the strand only.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <mutex>
#include <optional>

#include "relay/net/link.hpp"
#include "relay/net/send_queue.hpp"
#include "relay/net/tls_stream.hpp"

namespace deltarelay::relay::net {

class LinkImpl final : public Link, public std::enable_shared_from_this<LinkImpl> {
 public:
  /// `connection` has shaken hands; its executor is the link's strand. `place` is let go when the link has ended: how a
  /// listener counts its links.
  LinkImpl(LinkEnvironment environment, std::unique_ptr<TlsConnection> connection, PeerIdentity peer,
           std::shared_ptr<void> place);

  void start(LinkHandlers handlers) override;
  void send(codec::RecordPtr record, Lane lane) override;
  void close(std::string reason) override;
  [[nodiscard]] const PeerIdentity& peer() const noexcept override { return peer_; }
  [[nodiscard]] const std::string& remote_address() const noexcept override { return remote_address_; }
  [[nodiscard]] LinkCounts counts() const override;

 private:
  using Clock = std::chrono::steady_clock;
  template <class T = void>
  using awaitable = boost::asio::awaitable<T>;

  /// A record that was read: it waits for its SHA-256, and for those before it.
  struct Delivery {
    codec::RecordHeader header;
    std::shared_ptr<codec::Record> record;  ///< null when the header was refused
    ByteHold hold;
    std::optional<codec::error_code> verdict;
    std::string failure;  ///< text of an exception
  };

  // link.cpp
  [[nodiscard]] bool spawn_run();
  awaitable<> run();
  awaitable<> watch();
  awaitable<> close_in_order();
  awaitable<> wait_for_deliveries();
  void finish();
  void begin_close(std::string reason);
  void end_now(EndReason why, std::string detail);
  void note_end(LinkEnd end);
  void note_bytes();
  void forgive(Clock::duration late);
  [[nodiscard]] std::optional<LinkEnd> passed_deadline(Clock::time_point now) const;
  [[nodiscard]] Clock::time_point next_look(Clock::time_point now) const;

  // link_reader.cpp
  awaitable<> read_loop();
  awaitable<> read_records();
  awaitable<bool> read_record();
  awaitable<bool> read_payload(codec::RecordHeader header);
  awaitable<bool> read_exactly(codec::MutableBytes into, bool inside_record);
  awaitable<bool> skip(std::size_t bytes);
  awaitable<bool> wait_for_place();
  void verify_on_cpu(const std::shared_ptr<Delivery>& delivery);
  void deliver();

  // link_writer.cpp
  awaitable<> write_loop();
  awaitable<> write_batches();
  awaitable<bool> write_all(codec::Bytes bytes);
  void renew_keys();
  void report_sent(const SendQueue::Batch& batch);

  const LinkEnvironment environment_;
  const PeerIdentity peer_;
  std::string remote_address_;
  SendQueue queue_;
  std::atomic<std::uint64_t> received_bytes_{0}, sent_bytes_{0}, received_records_{0}, rejected_records_{0};

  std::mutex start_mutex_;
  enum class Phase : std::uint8_t { not_started, running, over } phase_ = Phase::not_started;  // under start_mutex_

  // strand
  std::unique_ptr<TlsConnection> connection_;
  std::shared_ptr<void> place_;
  std::shared_ptr<const LinkHandlers> handlers_;
  // Condition variables: timers that never expire; waiting for them ends by cancel().
  boost::asio::steady_timer write_wanted_, delivered_;
  boost::asio::steady_timer watch_timer_;

  std::optional<LinkEnd> end_;
  std::optional<std::string> close_reason_;
  std::optional<Clock::time_point> close_at_;
  std::optional<Clock::time_point> read_since_, write_since_;  ///< a read or write waits since then
  std::uint64_t key_bytes_ = 0;                                ///< sent with the present key
  bool write_unfinished_ = false;         ///< a TLS record may be half sent: the stream cannot be closed in order
  std::optional<LinkEnd> write_failure_;  ///< stands unless the reader finds a better reason before write_failure_at_
  std::optional<Clock::time_point> write_failure_at_;

  std::array<std::byte, codec::record_header_bytes> header_bytes_{};
  std::vector<std::byte> scratch_;
  std::deque<std::shared_ptr<Delivery>> deliveries_;
};

}  // namespace deltarelay::relay::net
