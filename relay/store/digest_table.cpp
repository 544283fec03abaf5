#include "relay/store/digest_table.hpp"

#include <algorithm>
#include <cassert>

namespace deltarelay::relay {

bool DigestTable::set_target(std::uint64_t ordinal, const codec::Digest& digest) {
  assert(ordinal < base_.size());
  const std::scoped_lock lock(mutex_);
  return targets_.try_emplace(ordinal, digest).first->second == digest;
}

std::optional<codec::Digest> DigestTable::target(std::uint64_t ordinal) const {
  const std::scoped_lock lock(mutex_);
  const auto found = targets_.find(ordinal);
  if (found == targets_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::uint64_t> DigestTable::changed() const {
  std::vector<std::uint64_t> ordinals;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [ordinal, digest] : targets_) ordinals.push_back(ordinal);
  }
  std::sort(ordinals.begin(), ordinals.end());
  return ordinals;
}

std::vector<codec::Digest> DigestTable::fold() const {
  std::vector<codec::Digest> table = base_;
  const std::scoped_lock lock(mutex_);
  for (const auto& [ordinal, digest] : targets_) table[ordinal] = digest;
  return table;
}

}  // namespace deltarelay::relay
