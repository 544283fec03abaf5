// A bounded number of places, each taken and given back by whoever holds it. Thread-safe. Internal to relay/net.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace deltarelay::relay::net {

class Places {
 public:
  explicit Places(std::size_t max) : max_(max) {}

  /// Null when all are taken. The place is given back with the last copy, also after this object has gone.
  [[nodiscard]] std::shared_ptr<void> take() {
    if (taken_->fetch_add(1) >= max_) {
      taken_->fetch_sub(1);
      return nullptr;
    }
    return std::shared_ptr<void>(taken_.get(), [taken = taken_](void*) { taken->fetch_sub(1); });
  }
  [[nodiscard]] std::size_t taken() const { return taken_->load(); }

 private:
  const std::size_t max_;
  std::shared_ptr<std::atomic<std::size_t>> taken_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace deltarelay::relay::net
