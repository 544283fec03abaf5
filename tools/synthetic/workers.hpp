// Runs independent jobs on a few threads and keeps the first refusal.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "codec/errc.hpp"

namespace deltarelay::synthetic {

/// One job: its number, and the number of the worker that runs it (0 .. threads-1), for buffers of its own.
using Job = std::function<codec::Checked<void>(std::size_t job, unsigned worker)>;

/// Set by whoever wants the work to end early; null: nobody does.
using StopFlag = const std::atomic<bool>*;

/// Who does the jobs.
struct Crew {
  unsigned threads = 1;  ///< with 1 the caller's thread does all
  StopFlag stop = nullptr;
};

/// Runs jobs 0 .. count-1, each once, in ascending order of their starts; returns when all workers are done. After a
/// refusal, and when `stop` is set, no new job begins. Exceptions of a job come out here.
/// Errors: operation_canceled when `stop` was set before the end; what a job refuses.
[[nodiscard]] codec::Checked<void> run_jobs(std::size_t count, Crew crew, const Job& job);

/// Two, or one on a machine with a single processor: beyond that memory and page cache are the limit.
[[nodiscard]] unsigned default_threads() noexcept;

}  // namespace deltarelay::synthetic
