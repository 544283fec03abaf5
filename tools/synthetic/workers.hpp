// Runs independent jobs on a few threads and keeps the first refusal.
#pragma once

#include <cstddef>
#include <functional>

#include "codec/errc.hpp"

namespace deltarelay::synthetic {

/// One job: its number, and the number of the worker that runs it (0 .. threads-1), for buffers of its own.
using Job = std::function<codec::Checked<void>(std::size_t job, unsigned worker)>;

/// Runs jobs 0 .. count-1, each once, in ascending order of their starts; returns when all workers are done. After a
/// refusal no new job begins. `threads` of 1 runs all on the caller's thread. Exceptions of a job come out here.
[[nodiscard]] codec::Checked<void> run_jobs(std::size_t count, unsigned threads, const Job& job);

/// Two, or one on a machine with a single processor: beyond that memory and page cache are the limit.
[[nodiscard]] unsigned default_threads() noexcept;

}  // namespace deltarelay::synthetic
