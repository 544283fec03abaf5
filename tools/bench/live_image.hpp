// An image that is brought from base to next and back again, a batch at a time: what decoding in place is measured on.
//
// Batches are independent: threads that take different ones need no lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/bench/trained_pair.hpp"

namespace deltarelay::bench {

class LiveImage {
 public:
  /// `pair` must outlive it.
  explicit LiveImage(const TrainedPair& pair)
      : pair_(pair), memory_(static_cast<std::size_t>(pair.bytes())), at_next_(pair.batches().size()) {
    for (const Batch& batch : pair.batches()) {
      for (std::size_t i = 0; i < batch.blocks.size(); ++i)
        std::ranges::copy(batch.blocks[i].base, block(batch, i).begin());
    }
  }

  /// The frames that fit what the image holds of this batch; afterwards they count as applied.
  const std::vector<codec::EncodedFrame>& turn(const Batch& batch) {
    std::uint8_t& at_next = at_next_[number_of(batch)];
    at_next ^= 1;
    return at_next != 0 ? batch.frames : batch.back;
  }

  [[nodiscard]] codec::MutableBytes block(const Batch& batch, std::size_t i) {
    return codec::MutableBytes(memory_).subspan(batch.offsets[i], batch.blocks[i].next.size());
  }

  [[nodiscard]] bool holds_what_it_should(const Batch& batch) {
    for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
      const codec::BlockInput& input = batch.blocks[i];
      if (!std::ranges::equal(block(batch, i), at_next_[number_of(batch)] != 0 ? input.next : input.base)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::size_t number_of(const Batch& batch) const {
    return static_cast<std::size_t>(&batch - pair_.batches().data());
  }

  const TrainedPair& pair_;
  std::vector<std::byte> memory_;
  std::vector<std::uint8_t> at_next_;  // bytes: neighbours belong to other threads
};

}  // namespace deltarelay::bench
