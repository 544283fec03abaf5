#include "relay/shell/image_verifier.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <chrono>

namespace deltarelay::relay {
namespace {

constexpr auto progress_interval = std::chrono::seconds(1);
constexpr int lowest_priority = 19;

}  // namespace

ImageVerifier::ImageVerifier(Verify verify, std::function<void(Event)> feed)
    : verify_(std::move(verify)), feed_(std::move(feed)) {
  // On Linux of this thread alone. A refit, or an engine, is always worth more than a verification.
  boost::asio::post(thread_, [] { (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), lowest_priority); });
}

void ImageVerifier::start(const VerifyImage& order) {
  stop();
  if (joined_) return;
  stopped_ = std::make_shared<std::atomic<bool>>(false);
  boost::asio::post(thread_, [this, order, stopped = stopped_] {
    if (*stopped) return;
    const auto began = std::chrono::steady_clock::now();
    auto told = began;
    const auto report = verify_(order.deep, [&](std::uint64_t checked_bytes, std::uint64_t total_bytes) {
      if (const auto now = std::chrono::steady_clock::now(); now - told >= progress_interval) {
        told = now;
        feed_(VerifyProgress{order.attempt, checked_bytes, total_bytes});
      }
      return !*stopped;
    });
    if (*stopped) return;
    ImageVerified event{order.attempt, verify_result(report, order.deep)};
    const auto took = std::chrono::steady_clock::now() - began;
    event.result.milliseconds =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
    feed_(std::move(event));
  });
}

void ImageVerifier::stop() {
  if (stopped_) *stopped_ = true;
}

void ImageVerifier::join() {
  joined_ = true;
  stop();
  thread_.join();
}

VerifyResult verify_result(const StoreResult<VerifyReport>& report, bool deep) {
  VerifyResult result;
  if (!report) {
    result.state = VerifyState::failed;
    result.text = report.error().text();
    return result;
  }
  result.state = report->ok() ? VerifyState::ok : VerifyState::damaged;
  result.version = report->version;
  result.total_bytes = report->bytes;
  result.checked_bytes = deep ? report->bytes : 0;
  result.damaged_blocks = report->differing.size();
  for (const codec::BlockId& id : report->differing) {
    if (result.damaged.size() == damaged_named_max) break;
    result.damaged.push_back({report->layout->tensor(id.tensor).name, codec::raw(id.block)});
  }
  if (!report->findings.empty()) result.text = report->findings.front();
  return result;
}

}  // namespace deltarelay::relay
