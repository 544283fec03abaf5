// Which parent to try next, and when: the planned one first and longest, then the others in plan order, with jittered
// back-off for ever.
//
// Layer: relay/core; randomness is seeded by the caller. Rank falls strictly along attachments, so cycles are impossible:
// the candidate list holds only nodes of lower rank, and a parent refuses a child whose rank is not higher than its own.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "relay/core/events.hpp"

namespace deltarelay::relay {

struct Candidate {
  std::string name, address;
};

class Reattach {
 public:
  struct Options {
    Duration first = std::chrono::milliseconds(100);
    Duration max = std::chrono::seconds(5);
    unsigned tries_each = 3;  ///< failures in a row before the next candidate
  };
  Reattach(std::vector<Candidate> candidates, Options options, std::uint64_t seed)
      : candidates_(std::move(candidates)), options_(options), random_(seed) {}

  /// The candidate to dial now, or null when it is not time yet or there is none.
  [[nodiscard]] const Candidate* due(Instant now) const {
    if (candidates_.empty() || now < next_at_) return nullptr;
    return &candidates_[(passed_over_ + failures_ / options_.tries_each) % candidates_.size()];
  }
  void failed(Instant now) {
    const unsigned doublings = std::min(failures_, 10u);
    ++failures_;
    const Duration ceiling = std::min(options_.max, options_.first * (1 << doublings));
    std::uniform_real_distribution<double> part(0.5, 1.0);
    next_at_ = now + std::chrono::duration_cast<Duration>(ceiling * part(random_));
  }
  void attached() { failures_ = 0; }
  /// The parent is up and cannot help: the one after it is next. Until settled(), or the same one would be asked again.
  void pass_over() {
    ++passed_over_;
    failures_ = 0;
  }
  void settled() { passed_over_ = 0; }
  /// Each candidate was passed over once.
  [[nodiscard]] bool passed_over_all() const noexcept { return passed_over_ >= candidates_.size(); }
  [[nodiscard]] unsigned failures() const noexcept { return failures_; }

 private:
  std::vector<Candidate> candidates_;
  Options options_;
  std::mt19937_64 random_;
  unsigned failures_ = 0, passed_over_ = 0;
  Instant next_at_{};
};

}  // namespace deltarelay::relay
