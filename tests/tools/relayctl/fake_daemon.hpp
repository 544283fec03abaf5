// A Unix socket that answers HTTP with what the test put there: the daemon as relayctl sees it.
//
// Answers are queued by method and target; the last one of a queue is given again and again. What was asked is kept.
// One thread, one connection at a time; the destructor ends it.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace deltarelay::relayctl::test {

class FakeDaemon {
 public:
  FakeDaemon();
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  [[nodiscard]] std::string socket() const;
  /// `question`: "GET /v1/status". Without an answer a question gets 404.
  void answer(const std::string& question, const std::string& body, unsigned http_status = 200);
  /// From now on connections are taken and nothing is said.
  void fall_silent();
  /// Every question so far, with its body after a blank.
  [[nodiscard]] std::vector<std::string> asked() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace deltarelay::relayctl::test
