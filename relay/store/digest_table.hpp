// The digests of an image's blocks while a refit is applied: the base, which stays, and the targets that frames bring.
//
// Shared by all apply workers. base() needs no lock: it never changes after construction.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "codec/digest.hpp"

namespace deltarelay::relay {

class DigestTable {
 public:
  explicit DigestTable(std::vector<codec::Digest> base) : base_(std::move(base)) {}

  [[nodiscard]] const std::vector<codec::Digest>& base() const noexcept { return base_; }
  /// False when another target was set for this block before: two frames that contradict each other.
  [[nodiscard]] bool set_target(std::uint64_t ordinal, const codec::Digest& digest);
  [[nodiscard]] std::optional<codec::Digest> target(std::uint64_t ordinal) const;
  /// Ordinals of all targets, ascending.
  [[nodiscard]] std::vector<std::uint64_t> changed() const;
  /// The table with the targets in place; codec::digest_of() of it is the digest of the new image.
  [[nodiscard]] std::vector<codec::Digest> fold() const;

 private:
  const std::vector<codec::Digest> base_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, codec::Digest> targets_;
};

}  // namespace deltarelay::relay
