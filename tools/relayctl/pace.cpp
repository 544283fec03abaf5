// See pace.hpp.
#include "tools/relayctl/pace.hpp"

#include <poll.h>

#include <algorithm>

namespace deltarelay::relayctl {

Pace::Instant MachinePace::now() const {
  return std::chrono::steady_clock::now();
}

std::chrono::sys_seconds MachinePace::wall() const {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

bool MachinePace::rest(std::chrono::milliseconds time) {
  ::poll(nullptr, 0, static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(time.count(), 0, 60'000)));
  return true;
}

}  // namespace deltarelay::relayctl
