// Time as the commands that wait see it.
//
// An argument of those commands, so that a test can run ten minutes of waiting at once and say when it ends.
#pragma once

#include <chrono>

namespace deltarelay::relayctl {

class Pace {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  Pace() = default;
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;
  virtual ~Pace() = default;

  /// For intervals and deadlines; never jumps.
  [[nodiscard]] virtual Instant now() const = 0;
  /// For what people read.
  [[nodiscard]] virtual std::chrono::sys_seconds wall() const = 0;
  /// Lets time pass. False: whoever waits shall stop now.
  [[nodiscard]] virtual bool rest(std::chrono::milliseconds time) = 0;
};

/// The machine's clocks; rest() never asks to stop, an interrupt ends the program.
class MachinePace final : public Pace {
 public:
  [[nodiscard]] Instant now() const override;
  [[nodiscard]] std::chrono::sys_seconds wall() const override;
  [[nodiscard]] bool rest(std::chrono::milliseconds time) override;
};

}  // namespace deltarelay::relayctl
