// Log, image and block sync: each action goes to the thread that may block for it, and comes back as an event.
#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "relay/shell/marker_store.hpp"
#include "relay/shell/refit_store.hpp"
#include "relay/shell/shell.hpp"

namespace deltarelay::relay {
namespace {
constexpr auto files_wait = std::chrono::seconds(5);
}  // namespace

// ------------------------------------------------------------------------------------------------ log

void Shell::perform(const AppendRecord& action) {
  if (auto published = parts_.store->log().publish(action.record); !published)
    return feed(LogFailed{reason_code(published.error()), published.error().text()});
  net::ByteHold hold;
  if (auto found = holds_.find(action.record.get()); found != holds_.end()) hold = std::move(found->second);
  log_writer_->append(action.record, std::move(hold));
}

void Shell::perform(const DropRefit& action) {
  // Forgotten at once, because a record of another refit with its number may be appended next.
  log_writer_->after([this, files = parts_.store->log().forget(action.version)] {
    if (auto removed = parts_.store->log().remove(files); !removed)
      note(Note::Level::warn, reason_code(removed.error()), removed.error().text());
  });
}

// ------------------------------------------------------------------------------------------------ engines

void Shell::hold_engines(std::string what, std::function<void()> then) {
  const auto image = parts_.store->image();
  if (stopping_ || !image) return;
  engine_wait_.start(
      std::move(what), [image] { return image->image().try_hold_engines(); }, std::move(then));
}

void Shell::release_engines() {
  if (const auto image = parts_.store->image()) image->image().release_engines();
}

void Shell::flush_image() {
  // Nobody waits for it: it only keeps short what a power cut would make the next start put back.
  boost::asio::post(flusher_, [this, image = parts_.store->image()] {
    if (auto synced = image->image().sync(); !synced)
      note(Note::Level::warn, reason_code(synced.error()), synced.error().text());
  });
}

// ------------------------------------------------------------------------------------------------ a refit

void Shell::perform(const MarkApplying& action) {
  apply_queue_->close_gate(action.to);
  on_state([this, action] {
    hold_engines(fmt::format("the refit to v{}", codec::raw(action.to)), [this, action] {
      // Without the marker engines would take a half-changed image for a whole one: the gate stays shut.
      if (auto marked = mark_applying(*parts_.store, action.from, action.to); !marked)
        return feed(MarkFailed{action.to, reason_code(marked.error()), marked.error().text()});
      on_core([this, version = action.to] { apply_queue_->open_gate(version); });
    });
  });
}

void Shell::perform(const ApplyRecord& action) {
  log_writer_->after(
      [this, position = action.position] { on_core([this, position] { apply_queue_->apply(position); }); });
}

void Shell::perform(const SyncImage& action) {
  log_writer_->sync_then([this, version = action.version](StoreResult<void> synced) {
    if (!synced) return feed(ImageSynced{version, {}, reason_code(synced.error()), synced.error().text()});
    feed_from_state([this, version]() -> Event { return sync_image(*parts_.store, version); });
  });
}

void Shell::perform(const SaveCommit& action) {
  on_state([this, action] {
    CommitSaved saved = save_commit(*parts_.store, action);
    if (saved.error_code.empty()) {
      release_engines();
      flush_image();
    }
    feed(std::move(saved));
  });
}

void Shell::perform(const CompareWithBase& action) {
  apply_queue_->forget();
  on_state([this] { engine_wait_.cancel(); });
  apply_queue_->when_idle([this, version = action.version] {
    on_state([this, version] {
      BaseCompared compared = compare_with_base(*parts_.store, version);
      if (compared.differing.empty() && compared.error_code.empty()) release_engines();
      feed(std::move(compared));
    });
  });
}

void Shell::perform(const ReopenImage&) {
  apply_queue_->forget();
  // The workers of the image that is left write to the slots that the next one's recovery reads.
  apply_queue_->when_idle([this] {
    on_state([this] {
      engine_wait_.cancel();
      waiting_for_files_.reset();
      sync_receiver_.give_up();
      release_engines();
      open_image_now();
    });
  });
}

// ------------------------------------------------------------------------------------------------ block sync

void Shell::perform(const PrepareSync& action) {
  apply_queue_->forget();
  // Records of a refit that is given up may still be on their way into the image that is about to be hashed.
  apply_queue_->when_idle([this, action] {
    on_state([this, action] {
      engine_wait_.cancel();
      waiting_for_files_.reset();
      if (auto failure = sync_receiver_.prepare(action)) return feed(*failure);
      hold_engines("the block sync", [this] {
        feed(sync_receiver_.begin(stopping_));
        if (sync_receiver_.files_complete()) files_came();
        if (auto event = sync_receiver_.compare()) feed(*event);
      });
    });
  });
}

void Shell::perform(const StoreSyncDigests& action) {
  apply_queue_->when_idle([this, action, hold = message_hold_] {  // behind the preparation
    on_state([this, action, hold] {
      if (auto event = sync_receiver_.store_digests(action)) return feed(*event);
      if (auto event = sync_receiver_.compare()) feed(*event);
    });
  });
}

void Shell::perform(const ApplySyncBlocks& action) {
  apply_queue_->apply(action, message_hold_);
}

void Shell::perform(const ApplySyncFile& action) {
  on_state([this, action, hold = message_hold_] {
    if (const std::string wrong = sync_receiver_.apply_file(action); !wrong.empty())
      note(Note::Level::error, "SYNC_FILE", wrong);
    if (sync_receiver_.files_complete()) files_came();
  });
}

void Shell::files_came() {
  for (const LinkId link : std::exchange(children_without_files_, {})) on_core([this, link] { send_files(link); });
  if (waiting_for_files_) save_synced(*std::exchange(waiting_for_files_, std::nullopt));
}

void Shell::perform(const SaveSynced& action) {
  apply_queue_->when_idle([this, action] { on_state([this, action] { save_synced(action); }); });
}

void Shell::save_synced(SaveSynced action) {
  if (!sync_receiver_.files_complete()) {
    // They follow the table on the same link; a parent that lost them since is asked again by the core.
    waiting_for_files_ = action;
    files_timer_.expires_after(files_wait);
    files_timer_.async_wait([this](boost::system::error_code ec) {
      if (ec || stopping_ || !std::exchange(waiting_for_files_, std::nullopt)) return;
      feed(CommitSaved{{}, "SYNC_FILES_MISSING", "the parent has not sent every small file that the version names"});
    });
    return;
  }
  CommitSaved saved = sync_receiver_.save(action);
  if (saved.error_code.empty()) {
    release_engines();
    flush_image();
  }
  feed(std::move(saved));
}

}  // namespace deltarelay::relay
