// Lets a command that would leave half-made files behind clear them away when it is told to stop.
//
// While one is alive SIGINT, SIGTERM and SIGHUP set a flag instead of ending the process; work looks at the flag
// between its pieces. A second signal ends the process at once. Signals that the caller had ignored (nohup) stay
// ignored.
#pragma once

#include <atomic>
#include <string_view>

#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

class Interruption {
 public:
  /// REQUIRES that no other one is alive: dispositions belong to the process.
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// For code that knows nothing of signals. Valid as long as the process.
  [[nodiscard]] static const std::atomic<bool>& flag() noexcept;
  [[nodiscard]] static bool requested() noexcept { return flag().load(std::memory_order_relaxed); }

  /// Says that `what` was stopped and ends the process by the signal that came, so that a shell's loop stops as well.
  /// REQUIRES requested(), and that everything is cleared away. The result is for a process that outlives its signal.
  [[nodiscard]] static int end(const Context& context, std::string_view what);
};

}  // namespace deltarelay::relayctl
