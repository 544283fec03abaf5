#include "relay/admin/admin_reply.hpp"

namespace deltarelay::relay::admin {

void AdminReply::Slot::put(unsigned status, std::string body) {
  const std::lock_guard lock(mutex_);
  if (!wake_) return;
  Answer given;
  given.status = status;
  given.body = std::move(body);
  answer_ = std::move(given);
  // Under the lock: close() must not return while the connection's executor is still being used.
  std::exchange(wake_, nullptr)();
}

bool AdminReply::Slot::open() const {
  const std::lock_guard lock(mutex_);
  return static_cast<bool>(wake_);
}

std::optional<Answer> AdminReply::Slot::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answer_, std::nullopt);
}

void AdminReply::Slot::close() {
  std::function<void()> unused;
  const std::lock_guard lock(mutex_);
  unused.swap(wake_);
}

/// What the copies of a reply share: when it goes, nobody can answer any more.
struct AdminReply::Ticket {
  std::shared_ptr<Slot> slot;
  explicit Ticket(std::shared_ptr<Slot> of) : slot(std::move(of)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (!slot->open()) return;
    Answer lost = error_answer(500, "relayd dropped this request", "a defect: its handler ended without an answer",
                               "the daemon's log, and a report to its makers", 1);
    slot->put(lost.status, std::move(lost.body));
  }
};

AdminReply::AdminReply(std::shared_ptr<Slot> slot) : ticket_(std::make_shared<Ticket>(std::move(slot))) {}

void AdminReply::send(unsigned http_status, std::string body) const {
  ticket_->slot->put(http_status, std::move(body));
}

bool AdminReply::wanted() const {
  return ticket_->slot->open();
}

Answer error_answer(unsigned status, std::string what, std::string why, std::string try_next, int exit_code) {
  ErrorDocument document;
  document.what = std::move(what);
  document.why = std::move(why);
  document.try_next = std::move(try_next);
  document.exit_code = exit_code;
  Answer given;
  given.status = status;
  given.body = to_json(document);
  return given;
}

}  // namespace deltarelay::relay::admin
