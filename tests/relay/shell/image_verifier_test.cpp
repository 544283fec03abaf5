// The background reading behind `relayctl verify`: one answer an order, none of an order that was stopped.
#include "relay/shell/image_verifier.hpp"

#include <doctest/doctest.h>

#include <future>
#include <mutex>
#include <thread>
#include <vector>

using namespace deltarelay;
using namespace deltarelay::relay;

namespace {

class Heard {
 public:
  void operator()(const Event& event) {
    const std::scoped_lock lock(mutex_);
    if (const auto* verified = std::get_if<ImageVerified>(&event)) answers_.push_back(*verified);
  }
  [[nodiscard]] std::vector<ImageVerified> answers() const {
    const std::scoped_lock lock(mutex_);
    return answers_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<ImageVerified> answers_;
};

}  // namespace

TEST_SUITE("relay/shell/image_verifier") {
  TEST_CASE("an order is answered with its attempt, and what the reading found") {
    Heard heard;
    std::promise<void> done;
    ImageVerifier verifier(
        [](bool deep, const VerifyWatch&) {
          VerifyReport report;
          report.version = codec::Version{9};
          report.bytes = deep ? 100 : 50;
          return StoreResult<VerifyReport>(report);
        },
        [&](const Event& event) {
          heard(event);
          done.set_value();
        });
    verifier.start(VerifyImage{4, true});
    done.get_future().wait();
    verifier.join();
    REQUIRE(heard.answers().size() == 1);
    CHECK(heard.answers()[0].attempt == 4);
    CHECK(heard.answers()[0].result.state == VerifyState::ok);
    CHECK(heard.answers()[0].result.version == codec::Version{9});
    CHECK(heard.answers()[0].result.checked_bytes == 100);
  }

  TEST_CASE("a newer order stops the reading, whose answer never comes") {
    Heard heard;
    std::promise<void> first_reads, second_done;
    ImageVerifier verifier(
        [&](bool deep, const VerifyWatch& watch) {
          if (deep) {
            first_reads.set_value();
            while (watch(1, 2)) std::this_thread::yield();  // only stop() ends it
          }
          return StoreResult<VerifyReport>(VerifyReport{});
        },
        [&](const Event& event) {
          heard(event);
          second_done.set_value();
        });
    verifier.start(VerifyImage{1, true});
    first_reads.get_future().wait();
    verifier.start(VerifyImage{2, false});
    second_done.get_future().wait();
    verifier.join();
    REQUIRE(heard.answers().size() == 1);
    CHECK(heard.answers()[0].attempt == 2);
  }

  TEST_CASE("join() ends a reading, and nothing is begun after it") {
    Heard heard;
    std::promise<void> reads;
    ImageVerifier verifier(
        [&](bool, const VerifyWatch& watch) {
          reads.set_value();
          while (watch(1, 2)) std::this_thread::yield();
          return StoreResult<VerifyReport>(VerifyReport{});
        },
        [&](const Event& event) { heard(event); });
    verifier.start(VerifyImage{1, true});
    reads.get_future().wait();
    verifier.join();
    verifier.start(VerifyImage{2, true});
    CHECK(heard.answers().empty());
  }

  TEST_CASE("damage has its sentence, and what cannot be read is not called damage") {
    const StoreError error{boost::system::errc::make_error_code(boost::system::errc::io_error), "read", "/image/a", 7};
    const VerifyResult failed = verify_result(error, true);
    CHECK(failed.state == VerifyState::failed);
    CHECK(failed.text.find("/image/a") != std::string::npos);
    VerifyReport report;
    report.findings = {"the headers differ"};
    const VerifyResult damaged = verify_result(report, false);
    CHECK(damaged.state == VerifyState::damaged);
    CHECK(damaged.text == "the headers differ");
    CHECK(damaged.checked_bytes == 0);
  }
}
