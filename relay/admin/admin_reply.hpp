// The place where a connection waits for its one answer, and the rule that exactly one comes.
//
// Layer: relay/admin, internal to the server. Thread-safe. After close() the slot refers to nothing of the connection,
// so replies may outlive connection, server and executor.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "relay/admin/admin_server.hpp"

namespace deltarelay::relay::admin {

struct Answer {
  unsigned status = 200;
  std::string body;
  std::string allow;  ///< of a 405
};

struct AdminReply::Slot {
  /// `wake` is called once, on the answering thread, when the answer is there.
  explicit Slot(std::function<void()> wake) : wake_(std::move(wake)) {}

  void put(unsigned status, std::string body);
  [[nodiscard]] bool open() const;
  [[nodiscard]] std::optional<Answer> take();
  void close();

 private:
  mutable std::mutex mutex_;
  std::function<void()> wake_;  // empty: answered or closed
  std::optional<Answer> answer_;
};

[[nodiscard]] Answer error_answer(unsigned status, std::string what, std::string why, std::string try_next,
                                  int exit_code);

}  // namespace deltarelay::relay::admin
