#include "tools/bench/pass_rates.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tools/bench/codec_passes.hpp"

namespace deltarelay::bench {
namespace {

constexpr std::uint64_t rounds_min = 3;
// Those before the dense ones, which take longer than all others together: they would leave few rounds for the
// baselines that everything is divided by.
constexpr std::uint64_t quick_passes = static_cast<std::uint64_t>(Pass::encode_dense);
static_assert(quick_passes == 7);

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Measurement {
 public:
  Measurement(const TrainedPair& pair, const RateOptions& options)
      : pair_(pair),
        workers_(options.threads),
        image_(pair),
        spare_(static_cast<std::size_t>(pair.bytes())),
        best_(pass_count * pair.batches().size(), std::numeric_limits<double>::infinity()) {
    for (const Batch& batch : pair.batches()) dense_.push_back(dense_frames(batch));
  }

  void round() {
    // With a prime number of passes every stride visits all of them, and each pass follows another one in turn.
    const std::uint64_t stride = 1 + rounds_ % (quick_passes - 1);
    for (std::uint64_t i = 0; i < quick_passes; ++i)
      run_on_all(static_cast<Pass>((rounds_ + i * stride) % quick_passes));
    if (rounds_ < rounds_min) {
      run_on_all(Pass::encode_dense);
      run_on_all(Pass::decode_dense);
    }
    ++rounds_;
  }

  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_; }

  [[nodiscard]] PassRates result() {
    for (const Passes& worker : workers_)
      if (worker.failed()) throw std::runtime_error("a block did not decode to its target");
    for (const Batch& batch : pair_.batches())
      if (!image_.holds_what_it_should(batch))
        throw std::runtime_error("the image does not hold what was applied to it");
    PassRates out;
    out.rounds = rounds_;
    for (const auto& frames : dense_)
      for (const codec::EncodedFrame& frame : frames) out.dense_payload_bytes += frame.payload.size();
    for (std::size_t pass = 0; pass < pass_count; ++pass) {
      double seconds = 0;
      for (std::size_t i = 0; i < pair_.batches().size(); ++i) seconds += best(pass, i);
      out.bytes_per_second[pass] = static_cast<double>(pair_.bytes()) / seconds;
    }
    return out;
  }

 private:
  double& best(std::size_t pass, std::size_t batch) { return best_[pass * pair_.batches().size() + batch]; }

  void run_on_all(Pass pass) {
    std::vector<std::jthread> others;
    for (unsigned w = 1; w < workers_.size(); ++w) others.emplace_back([this, pass, w] { work(pass, w); });
    work(pass, 0);
  }

  void work(Pass pass, unsigned worker) {
    for (std::size_t i = worker; i < pair_.batches().size(); i += workers_.size()) {
      const double begin = thread_seconds();
      const std::uint64_t trace = run(workers_[worker], pass, i);
      const double end = thread_seconds();
      // Nobody reads the sum: it ties the pass to something that happens.
      traces_.fetch_add(trace, std::memory_order_relaxed);
      double& slot = best(static_cast<std::size_t>(pass), i);
      // A clock that did not move would make a rate without end.
      slot = std::min(slot, std::max(end - begin, 1e-9));
    }
  }

  std::uint64_t run(Passes& passes, Pass pass, std::size_t number) {
    const Batch& batch = pair_.batches()[number];
    switch (pass) {
      case Pass::compare:
        return passes.compare(batch);
      case Pass::copy:
        return passes.copy(batch, spare_);
      case Pass::digest:
        return passes.digest(batch);
      case Pass::scan:
        return passes.scan(batch);
      case Pass::encode:
        return passes.encode(batch);
      case Pass::decode:
        return passes.decode(batch);
      case Pass::apply:
        return passes.apply(batch, image_);
      case Pass::encode_dense:
        return passes.encode_dense(batch);
      case Pass::decode_dense:
        return passes.decode_dense(batch, dense_[number]);
    }
    return 0;
  }

  const TrainedPair& pair_;
  std::vector<Passes> workers_;
  LiveImage image_;
  std::vector<std::byte> spare_;
  std::vector<std::vector<codec::EncodedFrame>> dense_;  // by batch
  std::vector<double> best_;                             // seconds, by pass and batch; a batch is one thread's
  std::atomic<std::uint64_t> traces_{0};
  std::uint64_t rounds_ = 0;
};

}  // namespace

std::string_view pass_name(Pass pass) noexcept {
  constexpr std::string_view names[pass_count] = {"compare", "memcpy", "digest",       "scan",        "encode",
                                                  "decode",  "apply",  "dense_encode", "dense_decode"};
  return names[static_cast<std::size_t>(pass)];
}

PassRates measure_passes(const TrainedPair& pair, const RateOptions& options) {
  assert(options.threads >= 1 && options.threads <= pair.batches().size());
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Measurement measurement(pair, options);
  do {
    measurement.round();
  } while (measurement.rounds() < rounds_min ||
           std::chrono::duration<double>(Clock::now() - begin).count() < options.seconds);
  return measurement.result();
}

}  // namespace deltarelay::bench
