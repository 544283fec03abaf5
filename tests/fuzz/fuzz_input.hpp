// What the fuzz targets share: taking decisions off the front of the input, and stopping at a broken promise.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "codec/types.hpp"

namespace deltarelay::fuzz {

/// A promise of the code under test; a fuzzer reports the abort, a replay fails.
inline void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(std::as_bytes(std::span(data, size))) {}
  /// Zero when there is nothing left.
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto out = std::to_integer<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return out;
  }
  std::size_t below(std::size_t bound) { return (byte() | std::size_t{byte()} << 8) % bound; }
  codec::Bytes take(std::size_t count) {
    const codec::Bytes out = rest_.first(count < rest_.size() ? count : rest_.size());
    rest_ = rest_.subspan(out.size());
    return out;
  }
  [[nodiscard]] codec::Bytes rest() const { return rest_; }

 private:
  codec::Bytes rest_;
};

/// Memory of exactly this size, so that a sanitizer sees the first byte past it.
class ExactBuffer {
 public:
  explicit ExactBuffer(std::size_t size) : size_(size), data_(std::make_unique<std::byte[]>(size)) {}
  [[nodiscard]] codec::MutableBytes bytes() const { return {data_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace deltarelay::fuzz
