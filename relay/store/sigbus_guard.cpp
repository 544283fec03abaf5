#include "relay/store/sigbus_guard.hpp"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>

namespace deltarelay::relay {
namespace {

thread_local sigjmp_buf* volatile resume_at = nullptr;

void on_sigbus(int signal_number) {
  if (resume_at != nullptr) siglongjmp(*resume_at, 1);
  // Not ours: end the process as if there were no guard, also when the signal was sent and no instruction faults again.
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

}  // namespace

void install_sigbus_guard() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_handler = on_sigbus;
    action.sa_flags = SA_NODEFER;  // the jump leaves the handler without unblocking the signal
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, nullptr);
  });
}

bool guarded_copy(codec::MutableBytes to, codec::Bytes from) noexcept {
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    resume_at = nullptr;
    return false;
  }
  resume_at = &here;
  // Volatile alone does not keep the compiler from moving the copy out from between the two stores.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  resume_at = nullptr;
  return true;
}

}  // namespace deltarelay::relay
