// The one writer of the log: records go to their segments in order, and work that depends on them waits behind them.
//
// Threads: the public functions on the core strand; files are touched on a thread of its own. A record that cannot be
// written is tried again until it can (a disk full now may have room later); what waits behind it waits too, so nothing
// is applied or voted for that the log does not hold.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "relay/core/events.hpp"
#include "relay/net/byte_budget.hpp"
#include "relay/store/log.hpp"

namespace deltarelay::relay {

class LogWriter {
 public:
  using Feed = std::function<void(Event)>;
  /// Called on the writer's thread with the bytes of each record written.
  using Written = std::function<void(std::uint64_t)>;

  LogWriter(RefitLog& log, Feed feed, Written written)
      : log_(log), feed_(std::move(feed)), written_(std::move(written)) {}

  /// Already published. `hold` is given back when it is written. -> LogFailed on a failure; with an empty code once it
  /// is over
  void append(codec::RecordPtr record, net::ByteHold hold);
  /// On the writer's thread, when everything before is written.
  void after(std::function<void()> work);
  /// Makes everything before durable first.
  void sync_then(std::function<void(StoreResult<void>)> work);

  /// Writes what can be written, then ends. What a full disk still holds up is lost, as in a crash: it was never said
  /// to be held.
  void stop();

 private:
  struct Append {
    codec::RecordPtr record;
    net::ByteHold hold;
  };
  using Work = std::function<void()>;
  using Item = std::variant<Append, Work>;

  void push(Item item);
  void pump();
  [[nodiscard]] bool write(const codec::RecordPtr& record);

  RefitLog& log_;
  Feed feed_;
  Written written_;
  boost::asio::thread_pool thread_{1};
  std::deque<Item> items_;  // on the thread
  bool waiting_ = false, failing_ = false, stopping_ = false;
  boost::asio::steady_timer retry_{thread_.get_executor()};
};

}  // namespace deltarelay::relay
