#include "relay/store/sigbus_guard.hpp"

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>

namespace deltarelay::relay {
namespace {

thread_local sigjmp_buf* volatile resume_at = nullptr;

void on_sigbus(int signal_number) {
  if (resume_at != nullptr) siglongjmp(*resume_at, 1);
  // Not ours: the default action ends the process when the faulting instruction runs again.
  std::signal(signal_number, SIG_DFL);
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
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  resume_at = nullptr;
  return true;
}

}  // namespace deltarelay::relay
