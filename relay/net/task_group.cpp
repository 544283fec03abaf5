#include "relay/net/task_group.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <cassert>
#include <future>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace deltarelay::relay::net {
namespace asio = boost::asio;
namespace {

/// One task; `signal` and `cancelled` are touched on `executor` only.
struct Running {
  asio::any_io_executor executor;
  asio::cancellation_signal signal;
  bool cancelled = false;
};

/// Text of an exception that must not be passed over in silence; empty for none and for a cancelled task's own.
std::string escaped_text(const std::exception_ptr& escaped) {
  if (!escaped) return {};
  try {
    std::rethrow_exception(escaped);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted ? std::string() : std::string(e.what());
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

struct TaskGroup::State {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::shared_ptr<Running>> tasks;
  std::uint64_t next_id = 0;
  std::uint64_t escaped = 0;
  bool stopping = false;
  std::vector<std::function<void()>> when_empty;
  std::function<void(const std::string&)> report;

  void finish(std::uint64_t id, const std::exception_ptr& exception) {
    const std::string text = escaped_text(exception);
    if (!text.empty() && report) report(text);
    std::vector<std::function<void()>> done;
    {
      const std::lock_guard lock(mutex);
      if (!text.empty()) ++escaped;
      tasks.erase(id);
      if (stopping && tasks.empty()) done.swap(when_empty);
    }
    for (const auto& call : done) call();
  }
};

TaskGroup::TaskGroup(std::function<void(const std::string&)> report) : state_(std::make_shared<State>()) {
  state_->report = std::move(report);
}

TaskGroup::~TaskGroup() {
  assert(size() == 0);
}

bool TaskGroup::spawn(asio::any_io_executor executor, Task task) {
  auto running = std::make_shared<Running>();
  running->executor = executor;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopping) return false;
    id = state_->next_id++;
    state_->tasks.emplace(id, running);
  }
  // Started on its own executor, so that the slot is connected where the signal is emitted.
  asio::post(executor, [state = state_, running, id, executor, task = std::move(task)]() mutable {
    if (running->cancelled) {
      task = nullptr;  // before finish(): what the task captured may be what the group's owner waits for
      state->finish(id, nullptr);
      return;
    }
    asio::co_spawn(executor, std::move(task),
                   asio::bind_cancellation_slot(running->signal.slot(), [state, running, id](std::exception_ptr escaped) {
                     state->finish(id, escaped);
                   }));
  });
  return true;
}

void TaskGroup::async_stop(std::function<void()> done) {
  std::vector<std::shared_ptr<Running>> to_cancel;
  {
    const std::lock_guard lock(state_->mutex);
    if (!std::exchange(state_->stopping, true))
      for (const auto& [id, running] : state_->tasks) to_cancel.push_back(running);
    if (!state_->tasks.empty()) state_->when_empty.push_back(std::exchange(done, nullptr));
  }
  for (const auto& running : to_cancel) {
    asio::post(running->executor, [running] {
      running->cancelled = true;
      running->signal.emit(asio::cancellation_type::terminal);
    });
  }
  if (done) done();
}

void TaskGroup::stop() {
  auto stopped = std::make_shared<std::promise<void>>();
  async_stop([stopped] { stopped->set_value(); });
  stopped->get_future().wait();
}

std::size_t TaskGroup::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->tasks.size();
}
bool TaskGroup::is_stopping() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stopping;
}
std::uint64_t TaskGroup::escaped_exceptions() const {
  const std::lock_guard lock(state_->mutex);
  return state_->escaped;
}

}  // namespace deltarelay::relay::net
