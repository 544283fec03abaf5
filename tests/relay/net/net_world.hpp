// Threads, strands and recorders for tests of links over real sockets on 127.0.0.1.
//
// Everything is awaited with wait_for(), which ends when the state is there and fails the test after `patience`.
#pragma once

#include <doctest/doctest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "relay/net/connector.hpp"
#include "relay/net/link.hpp"
#include "relay/net/listener.hpp"
#include "tests/relay/net/test_mesh.hpp"

namespace deltarelay::tests {

using namespace std::chrono_literals;
inline constexpr auto patience = 30s;

/// A value that threads change and a test waits for.
template <class T>
class Watched {
 public:
  template <class Change>
  void change(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change(value_);
    }
    changed_.notify_all();
  }
  template <class Wanted>
  [[nodiscard]] bool wait_for(Wanted wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return wanted(value_); });
  }
  [[nodiscard]] T get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  template <class Look>
  [[nodiscard]] auto look(Look look) const {
    const std::lock_guard lock(mutex_);
    return look(value_);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  T value_{};
};

/// What a link told its owner.
struct Seen {
  std::vector<codec::RecordPtr> records;
  std::vector<relay::net::ByteHold> holds;
  std::vector<std::pair<codec::RecordHeader, codec::error_code>> rejected;
  std::array<std::uint64_t, 2> sent_bytes{};
  std::vector<relay::net::LinkEnd> ends;
  bool after_end = false;  ///< something came after on_end
};

/// A link with its recorder. `keep_holds`: the budget's bytes stay taken, as if the log were behind.
class Endpoint {
 public:
  explicit Endpoint(bool keep_holds = false) : keep_holds_(keep_holds) {}

  [[nodiscard]] relay::net::LinkHandlers handlers() {
    relay::net::LinkHandlers out;
    out.on_record = [this](codec::RecordPtr record, relay::net::ByteHold hold) {
      seen.change([&](Seen& s) {
        s.after_end |= !s.ends.empty();
        s.records.push_back(std::move(record));
        if (keep_holds_) s.holds.push_back(std::move(hold));
      });
    };
    out.on_rejected = [this](codec::RecordHeader header, codec::error_code why) {
      seen.change([&](Seen& s) {
        s.after_end |= !s.ends.empty();
        s.rejected.emplace_back(header, why);
      });
    };
    out.on_sent = [this](std::uint64_t bytes, relay::net::Lane lane) {
      seen.change([&](Seen& s) {
        s.after_end |= !s.ends.empty();
        s.sent_bytes.at(static_cast<std::size_t>(lane)) += bytes;
      });
    };
    out.on_end = [this](relay::net::LinkEnd end) { seen.change([&](Seen& s) { s.ends.push_back(std::move(end)); }); };
    return out;
  }
  void start(std::shared_ptr<relay::net::Link> started) {
    link = std::move(started);
    link->start(handlers());
  }
  [[nodiscard]] bool wait_for_records(std::size_t count) {
    return seen.wait_for([&](const Seen& s) { return s.records.size() >= count; });
  }
  [[nodiscard]] relay::net::LinkEnd wait_for_end() {
    REQUIRE(seen.wait_for([](const Seen& s) { return !s.ends.empty(); }));
    return seen.look([](const Seen& s) { return s.ends.front(); });
  }

  std::shared_ptr<relay::net::Link> link;
  Watched<Seen> seen;

 private:
  bool keep_holds_;
};

/// I/O threads, a core strand, a CPU pool and a task group, stopped in the right order.
class NetWorld {
 public:
  explicit NetWorld(std::size_t budget_bytes = 256 * codec::mib) : budget(budget_bytes) {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { io_.run(); });
  }
  NetWorld(const NetWorld&) = delete;
  NetWorld& operator=(const NetWorld&) = delete;
  ~NetWorld() { stop(); }

  void stop() {
    if (threads_.empty()) return;
    tasks.stop();
    work_.reset();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    cpu_.join();
    // No check macro: a test that failed is unwinding through here.
    if (tasks.escaped_exceptions() != 0) std::abort();
  }

  [[nodiscard]] relay::net::LinkEnvironment environment(relay::net::HeaderCheck check = {}) {
    relay::net::LinkEnvironment out;
    out.io = io_.get_executor();
    out.handlers = core_;
    out.cpu = cpu_.get_executor();
    out.budget = &budget;
    out.tasks = &tasks;
    out.check = std::move(check);
    return out;
  }
  [[nodiscard]] relay::net::LinkEnvironment environment(const TestMesh& mesh) {
    return environment(relay::net::signed_records_of(mesh.id(), mesh.verifier()));
  }

  [[nodiscard]] relay::net::ConnectResult connect(relay::net::LinkEnvironment environment,
                                                  std::shared_ptr<relay::net::TlsContext> tls,
                                                  relay::net::ConnectTarget target,
                                                  relay::net::ConnectConfig config = {}) {
    Watched<std::optional<relay::net::ConnectResult>> answer;
    relay::net::async_connect(
        std::move(environment), std::move(tls), std::move(target), config, [&](relay::net::ConnectResult result) {
          answer.change([&](std::optional<relay::net::ConnectResult>& a) { a = std::move(result); });
        });
    // The handler refers to this frame: a test that went on without an answer would be wrong in another way.
    if (!answer.wait_for([](const auto& a) { return a.has_value(); })) std::abort();
    return *answer.get();
  }

  boost::asio::io_context& io() noexcept { return io_; }

  relay::net::ByteBudget budget;
  relay::net::TaskGroup tasks;

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  boost::asio::strand<boost::asio::io_context::executor_type> core_{io_.get_executor()};
  boost::asio::thread_pool cpu_{1};
  std::vector<std::thread> threads_;
};

/// A listener whose links are kept as they come.
class Door {
 public:
  Door(relay::net::LinkEnvironment environment, std::shared_ptr<relay::net::TlsContext> tls,
       relay::net::ListenerConfig config = {}) {
    config.address = "127.0.0.1";
    auto opened = relay::net::Listener::open(std::move(environment), std::move(tls), std::move(config));
    REQUIRE_MESSAGE(opened.has_value(), (opened ? std::string() : opened.error().text()));
    listener = *opened;
    listener->start([links = links](std::shared_ptr<relay::net::Link> link, relay::net::PeerIdentity) {
      links->change([&](auto& l) { l.push_back(std::move(link)); });
    });
  }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(listener->port()); }
  [[nodiscard]] std::shared_ptr<relay::net::Link> wait_for_link(std::size_t index = 0) {
    REQUIRE(links->wait_for([&](const auto& l) { return l.size() > index; }));
    return links->look([&](const auto& l) { return l.at(index); });
  }
  [[nodiscard]] std::uint64_t refused(relay::net::Refusal why) const {
    return listener->refused().at(static_cast<std::size_t>(why));
  }

  std::shared_ptr<relay::net::Listener> listener;
  std::shared_ptr<Watched<std::vector<std::shared_ptr<relay::net::Link>>>> links =
      std::make_shared<Watched<std::vector<std::shared_ptr<relay::net::Link>>>>();
};

}  // namespace deltarelay::tests
