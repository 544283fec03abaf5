// What goes down one link in the data lane, in order: records of the log and pieces of a block sync, each read from
// disk only when its turn has come.
//
// Threads: the core strand, except the jobs, which run on `readers` one at a time. Bound: bytes given to the link and
// not yet handed to the kernel stay near `window_bytes`, and what waits behind them is a job, not its bytes.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "codec/record.hpp"
#include "relay/net/link.hpp"

namespace deltarelay::relay {

class Outbox : public std::enable_shared_from_this<Outbox> {
 public:
  /// Produces records; may block. An empty answer is skipped.
  using Job = std::function<std::vector<codec::RecordPtr>()>;
  /// Called on the core strand when the last byte of a job's records is with the kernel (or at once when it made none).
  using Sent = std::function<void(std::uint64_t bytes)>;

  Outbox(std::shared_ptr<net::Link> link, boost::asio::any_io_executor readers, boost::asio::any_io_executor core,
         std::uint64_t window_bytes)
      : link_(std::move(link)), readers_(std::move(readers)), core_(std::move(core)), window_bytes_(window_bytes) {}

  void push(Job job, Sent sent = {});
  /// The link has handed this many bytes of the data lane to the kernel.
  void on_sent(std::uint64_t bytes);
  /// The link has ended: nothing is read or told any more.
  void stop() {
    stopped_ = true;
    waiting_.clear();
    underway_.clear();
  }

 private:
  struct Waiting {
    Job job;
    Sent sent;
  };
  struct Underway {
    std::uint64_t bytes = 0, left = 0;
    Sent sent;
  };
  void pump();
  void produced(std::vector<codec::RecordPtr> records, const Sent& sent);

  std::shared_ptr<net::Link> link_;
  boost::asio::any_io_executor readers_, core_;
  std::uint64_t window_bytes_;
  std::deque<Waiting> waiting_;
  std::deque<Underway> underway_;
  std::uint64_t underway_bytes_ = 0;
  bool reading_ = false, stopped_ = false;
};

}  // namespace deltarelay::relay
