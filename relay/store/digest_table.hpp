// The digests that guard a refit: per block the base's and the target's. Shared by the apply workers.
//
// The base is immutable; targets begin as the base and are set block by block. lock() serialises work on one block, so a
// frame that arrives twice on two workers is applied once.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "codec/digest.hpp"

namespace deltarelay::relay {

using codec::Digest;

class DigestTable {
 public:
  explicit DigestTable(std::vector<Digest> base) : base_(std::move(base)), target_(base_) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return base_.size(); }
  [[nodiscard]] const Digest& base(std::uint64_t ordinal) const { return base_.at(ordinal); }
  [[nodiscard]] const std::vector<Digest>& base_digests() const noexcept { return base_; }
  /// REQUIRES that the caller holds lock(ordinal), or that no worker runs.
  [[nodiscard]] const Digest& target(std::uint64_t ordinal) const { return target_.at(ordinal); }
  void set_target(std::uint64_t ordinal, const Digest& digest) { target_.at(ordinal) = digest; }
  /// REQUIRES that no worker runs.
  [[nodiscard]] const std::vector<Digest>& target_digests() const noexcept { return target_; }
  [[nodiscard]] Digest base_image() const { return codec::digest_of(std::span<const Digest>(base_)); }
  [[nodiscard]] Digest target_image() const { return codec::digest_of(std::span<const Digest>(target_)); }

  [[nodiscard]] std::unique_lock<std::mutex> lock(std::uint64_t ordinal) const {
    return std::unique_lock(mutexes_[ordinal % mutexes_.size()]);
  }

 private:
  const std::vector<Digest> base_;
  std::vector<Digest> target_;
  mutable std::array<std::mutex, 64> mutexes_;
};

}  // namespace deltarelay::relay
