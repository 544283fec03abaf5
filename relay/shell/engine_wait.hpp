// Waiting until no engine reads the image, without a thread that blocks: the lock is tried again and again.
//
// State thread. One wait at a time: a newer one, or cancel(), ends the one before it, whose `then` is not called. Who
// waits for what is told as EnginesAwaited, once a wait, and taken back when it is over.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <string>

#include "relay/core/events.hpp"
#include "relay/store/store_error.hpp"

namespace deltarelay::relay {

class EngineWait {
 public:
  using Feed = std::function<void(Event)>;
  /// True: the lock is held. False: an engine reads.
  using TryHold = std::function<StoreResult<bool>()>;

  EngineWait(boost::asio::thread_pool& state, std::filesystem::path image_dir, Feed feed)
      : image_dir_(std::move(image_dir)), feed_(std::move(feed)), timer_(state) {}

  /// `what` waits: "the refit to v7". Tries at once.
  void start(std::string what, TryHold try_hold, std::function<void()> then);
  void cancel();

 private:
  void poll();
  void tell(std::string code, std::string text);

  std::filesystem::path image_dir_;
  Feed feed_;
  boost::asio::steady_timer timer_;
  std::string what_;
  TryHold try_hold_;
  std::function<void()> then_;  ///< empty: no wait
  std::string told_;            ///< code of what was told last and holds
};

}  // namespace deltarelay::relay
