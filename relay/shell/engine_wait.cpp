#include "relay/shell/engine_wait.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "relay/shell/host_store.hpp"
#include "relay/store/engine_lock.hpp"

namespace deltarelay::relay {
namespace {
constexpr auto poll_interval = std::chrono::milliseconds(50);
}

void EngineWait::start(std::string what, TryHold try_hold, std::function<void()> then) {
  cancel();
  what_ = std::move(what);
  try_hold_ = std::move(try_hold);
  then_ = std::move(then);
  poll();
}

void EngineWait::cancel() {
  then_ = nullptr;
  try_hold_ = nullptr;
  timer_.cancel();
  tell("", "");
}

void EngineWait::poll() {
  const StoreResult<bool> held = try_hold_();
  if (held && *held) {
    const std::function<void()> then = std::exchange(then_, nullptr);
    cancel();
    return then();
  }
  if (!held) {
    tell(reason_code(held.error()), what_ + " waits: " + held.error().text());
  } else if (told_ != engine_reads_code) {
    const std::string who = engines_reading(image_dir_);
    tell(engine_reads_code, fmt::format("{} waits since {:%Y-%m-%dT%H:%M:%SZ} for {}, which holds deltarelay.lock in {}",
                                   what_, fmt::gmtime(std::chrono::system_clock::now()),
                                   who.empty() ? "an engine" : who, image_dir_.string()));
  }
  timer_.expires_after(poll_interval);
  timer_.async_wait([this](boost::system::error_code ec) {
    // A cancelled wait's handler may come as a success when the timer had fired already.
    if (!ec && then_) poll();
  });
}

void EngineWait::tell(std::string code, std::string text) {
  if (code == told_) return;
  told_ = code;
  feed_(EnginesAwaited{std::move(code), std::move(text)});
}

}  // namespace deltarelay::relay
