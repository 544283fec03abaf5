// Compares the image with the ledger in the background, for the core's VerifyImage.
//
// One thread at the lowest priority of the scheduler, one reading at a time, a block of memory and the digest tables. A
// reading that was stopped tells nothing more. Threads: start(), stop() on the core strand; join() once, after which
// nothing is begun; `feed` is called on the verifier's thread.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>

#include "relay/core/actions.hpp"
#include "relay/store/verify.hpp"

namespace deltarelay::relay {

class ImageVerifier {
 public:
  /// What verify_image() takes, bound to this host's directories.
  using Verify = std::function<StoreResult<VerifyReport>(bool deep, const VerifyWatch& watch)>;

  ImageVerifier(Verify verify, std::function<void(Event)> feed);

  void start(const VerifyImage& order);
  void stop();
  void join();

 private:
  Verify verify_;
  std::function<void(Event)> feed_;
  std::shared_ptr<std::atomic<bool>> stopped_;  // of the reading in progress
  bool joined_ = false;
  boost::asio::thread_pool thread_{1};
};

/// The report as the core tells it on; milliseconds are left to the caller.
[[nodiscard]] VerifyResult verify_result(const StoreResult<VerifyReport>& report, bool deep);

}  // namespace deltarelay::relay
