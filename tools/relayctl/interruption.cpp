// See interruption.hpp.
#include "tools/relayctl/interruption.hpp"

#include <signal.h>
#include <string.h>

#include <array>
#include <cassert>
#include <cstdio>
#include <string>

namespace deltarelay::relayctl {
namespace {

constexpr std::array<int, 3> stopping_signals{SIGINT, SIGTERM, SIGHUP};

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "only these may be touched in a signal handler");
std::atomic<bool> requested_flag{false};
std::atomic<int> signal_that_came{0};
std::atomic<bool> alive{false};

void note_signal(int signal) {
  signal_that_came = signal;
  requested_flag = true;
}

}  // namespace

Interruption::Interruption() {
  const bool another = alive.exchange(true);
  assert(!another);
  for (const int signal : stopping_signals) {
    struct sigaction before = {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction noting = {};
    noting.sa_handler = note_signal;
    noting.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one is obeyed at once
    ::sigaction(signal, &noting, nullptr);
  }
}

Interruption::~Interruption() {
  for (const int signal : stopping_signals) {
    struct sigaction now = {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == note_signal) ::signal(signal, SIG_DFL);
  }
  alive = false;
}

const std::atomic<bool>& Interruption::flag() noexcept {
  return requested_flag;
}

int Interruption::end(const Context& context, std::string_view what) {
  const int signal = signal_that_came;
  assert(signal != 0);
  const char* name = ::sigabbrev_np(signal);
  context.note(std::string(what) + ": stopped by SIG" + (name == nullptr ? "?" : name) + ", nothing is left behind");
  std::fflush(context.out);
  std::fflush(context.err);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  return to_int(ExitCode::failed);
}

}  // namespace deltarelay::relayctl
