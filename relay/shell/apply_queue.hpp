// Records on their way into the image: held back until the image is marked and no engine reads it, then applied by a
// pool.
//
// Threads: every function on the core strand, except what runs on the pool. A record is applied only after it is
// written to the log: whatever a killed process leaves in the image is explained by the log (image_opening.hpp).
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <vector>

#include "relay/core/actions.hpp"
#include "relay/net/byte_budget.hpp"
#include "relay/shell/host_store.hpp"

namespace deltarelay::relay {

class ApplyQueue {
 public:
  using Feed = std::function<void(Event)>;
  /// Posts to the core strand.
  using ToCore = std::function<void(std::function<void()>)>;

  ApplyQueue(HostStore& store, unsigned threads, Feed feed, ToCore to_core)
      : store_(store), pool_(threads), feed_(std::move(feed)), to_core_(std::move(to_core)) {}

  /// A refit begins: its records are held back until open_gate(), and its targets go into a fresh digest table. Nothing
  /// happens when that gate is closed already.
  void close_gate(Version version);
  /// The image is marked as being changed: go.
  void open_gate(Version version);
  /// Drops what is held back, and the targets known so far: of an aborted refit nothing counts.
  void forget();

  /// The record is in the log. Records of another refit than the one begun are dropped. -> FrameApplied
  void apply(LogPosition position);
  /// -> SyncBlocksApplied. `hold` goes when they are applied.
  void apply(ApplySyncBlocks blocks, std::shared_ptr<net::ByteHold> hold);
  /// Calls `then` on the core strand once no record is being applied.
  void when_idle(std::function<void()> then);

  /// Waits for what is being applied.
  void stop() { pool_.join(); }

 private:
  void fresh_table();
  void run(std::function<Event()> work);
  void ended();

  HostStore& store_;
  boost::asio::thread_pool pool_;
  Feed feed_;
  ToCore to_core_;
  Version version_{};
  bool open_ = false;
  std::vector<LogPosition> held_;
  std::size_t running_ = 0;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace deltarelay::relay
