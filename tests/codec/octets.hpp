// Bytes for decoder tests: reproducible patterns, and copies in heap buffers of exactly their size, so that
// AddressSanitizer sees the first byte read past the end.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "codec/types.hpp"

namespace deltarelay::tests {

inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(size);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

class Exact {
 public:
  explicit Exact(codec::Bytes in) : size_(in.size()), data_(std::make_unique<std::byte[]>(in.size())) {
    if (!in.empty()) std::memcpy(data_.get(), in.data(), in.size());
  }
  [[nodiscard]] codec::Bytes bytes() const noexcept { return {data_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace deltarelay::tests
