// The owner of coroutines: whatever runs in relay/net was spawned here, can be told to stop, and is waited for.
//
// Each task has its own cancellation signal, emitted on the task's executor. Thread-safe. An exception that escapes a
// task is counted and reported with its text; a cancelled task's own "operation aborted" is not. The group must
// outlive its tasks: the destructor asserts that none is left.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace deltarelay::relay::net {

class TaskGroup {
 public:
  /// `report` gets the text of an exception that escaped a task, on that task's thread; may be empty.
  explicit TaskGroup(std::function<void(const std::string&)> report = {});
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  using Task = std::function<boost::asio::awaitable<void>()>;
  /// Runs `task` on `executor`, a strand or a context of one thread. False, and nothing runs, when the group is stopping.
  /// Pass a lambda, never its result; what it captures lives until the task has ended.
  [[nodiscard]] bool spawn(boost::asio::any_io_executor executor, Task task);

  /// Cancels every task and refuses new ones; `done` is called once, on the thread of the last task's end (or at once
  /// when there is none). May be called again: each `done` is called.
  void async_stop(std::function<void()> done);
  /// The same, waiting. REQUIRES another thread to be running the tasks' executors.
  void stop();

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool is_stopping() const;
  [[nodiscard]] std::uint64_t escaped_exceptions() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace deltarelay::relay::net
