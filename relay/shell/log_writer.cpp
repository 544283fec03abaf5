#include "relay/shell/log_writer.hpp"

#include <boost/asio/post.hpp>
#include <memory>

#include "relay/shell/host_store.hpp"

namespace deltarelay::relay {
namespace {
constexpr auto retry_after = std::chrono::seconds(1);
}

void LogWriter::append(codec::RecordPtr record, net::ByteHold hold) {
  push(Append{std::move(record), std::move(hold)});
}

void LogWriter::after(std::function<void()> work) {
  push(Work(std::move(work)));
}

void LogWriter::sync_then(std::function<void(StoreResult<void>)> work) {
  push(Work([this, work = std::move(work)] { work(log_.sync()); }));
}

void LogWriter::push(Item item) {
  auto shared = std::make_shared<Item>(std::move(item));
  boost::asio::post(thread_, [this, shared] {
    items_.push_back(std::move(*shared));
    pump();
  });
}

void LogWriter::pump() {
  if (waiting_) return;
  while (!items_.empty()) {
    if (auto* append = std::get_if<Append>(&items_.front())) {
      if (!write(append->record)) return;
    } else {
      std::get<Work>(items_.front())();
    }
    items_.pop_front();
  }
}

bool LogWriter::write(const codec::RecordPtr& record) {
  if (auto written = log_.write(record); !written) {
    failing_ = true;
    feed_(LogFailed{reason_code(written.error()), written.error().text()});
    if (stopping_) {
      items_.clear();
      return false;
    }
    waiting_ = true;
    retry_.expires_after(retry_after);
    retry_.async_wait([this](boost::system::error_code) {
      waiting_ = false;
      pump();
    });
    return false;
  }
  if (std::exchange(failing_, false)) feed_(LogFailed{"", ""});
  written_(record->bytes.size());
  return true;
}

void LogWriter::stop() {
  boost::asio::post(thread_, [this] {
    stopping_ = true;
    retry_.cancel();
    pump();
  });
  thread_.join();
}

}  // namespace deltarelay::relay
