#include "tools/synthetic/workers.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace deltarelay::synthetic {
namespace {

struct Shared {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::optional<codec::Failure> failure;
  std::exception_ptr thrown;
  StopFlag from_outside = nullptr;

  [[nodiscard]] bool stopped_from_outside() const { return from_outside != nullptr && *from_outside; }
};

void work(Shared& shared, std::size_t count, unsigned worker, const Job& job) {
  while (!shared.stop.load(std::memory_order_relaxed) && !shared.stopped_from_outside()) {
    const std::size_t mine = shared.next.fetch_add(1, std::memory_order_relaxed);
    if (mine >= count) return;
    try {
      if (auto done = job(mine, worker); !done) {
        const std::lock_guard lock(shared.mutex);
        if (!shared.failure) shared.failure = done.error();
        shared.stop = true;
      }
    } catch (...) {
      const std::lock_guard lock(shared.mutex);
      if (!shared.thrown) shared.thrown = std::current_exception();
      shared.stop = true;
    }
  }
}

}  // namespace

codec::Checked<void> run_jobs(std::size_t count, Crew crew, const Job& job) {
  Shared shared;
  shared.from_outside = crew.stop;
  {
    std::vector<std::jthread> others;
    for (unsigned worker = 1; worker < crew.threads; ++worker)
      others.emplace_back([&shared, &job, count, worker] { work(shared, count, worker, job); });
    work(shared, count, 0, job);
  }
  if (shared.thrown) std::rethrow_exception(shared.thrown);
  if (shared.failure) return *shared.failure;
  if (shared.stopped_from_outside())
    return codec::Failure{make_error_code(boost::system::errc::operation_canceled), {}, {}};
  return {};
}

unsigned default_threads() noexcept {
  return std::thread::hardware_concurrency() > 1 ? 2 : 1;
}

}  // namespace deltarelay::synthetic
