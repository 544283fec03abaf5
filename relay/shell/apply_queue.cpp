#include "relay/shell/apply_queue.hpp"

#include <boost/asio/post.hpp>

#include "relay/shell/refit_store.hpp"
#include "relay/shell/sync_store.hpp"

namespace deltarelay::relay {

void ApplyQueue::fresh_table() {
  // Targets of an earlier refit, aborted or given up, must not contradict those of the next one.
  if (const auto table = store_.table(); table && !table->changed().empty())
    store_.set_table(std::make_shared<DigestTable>(table->base()));
}

void ApplyQueue::close_gate(Version version) {
  if (version == version_ && !open_) return;  // marked again: what is held back still waits
  forget();
  version_ = version;
}

void ApplyQueue::open_gate(Version version) {
  if (version != version_) return;  // aborted while the image was being marked
  open_ = true;
  for (const LogPosition position : std::exchange(held_, {})) apply(position);
}

void ApplyQueue::forget() {
  held_.clear();
  open_ = false;
  version_ = Version{};
  fresh_table();
}

void ApplyQueue::apply(LogPosition position) {
  if (position.version != version_) return;
  if (!open_) return held_.push_back(position);
  run([this, position, table = store_.table()]() -> Event { return apply_record(store_, table, position); });
}

void ApplyQueue::apply(ApplySyncBlocks blocks, std::shared_ptr<net::ByteHold> hold) {
  run([this, blocks = std::move(blocks), hold = std::move(hold)]() -> Event {
    SyncBlocksApplied applied = apply_sync_blocks(store_, blocks);
    hold->release();
    return applied;
  });
}

void ApplyQueue::run(std::function<Event()> work) {
  ++running_;
  boost::asio::post(pool_, [this, work = std::move(work)] {
    Event event = work();
    // The count goes down first: whoever waits for idleness must not be overtaken by what the event sets off.
    to_core_([this, event = std::move(event)] {
      ended();
      feed_(event);
    });
  });
}

void ApplyQueue::ended() {
  if (--running_ != 0) return;
  for (const auto& then : std::exchange(waiting_, {})) then();
}

void ApplyQueue::when_idle(std::function<void()> then) {
  if (running_ == 0) return then();
  waiting_.push_back(std::move(then));
}

}  // namespace deltarelay::relay
