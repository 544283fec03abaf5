// Where the classes and contexts of a model begin, found from a sample of the blocks that will share it.
//
// A sample and not the blocks: ranks are counted while a block is in the cache, so the classes must be known before the
// first block is scanned. Frequencies, in contrast, are counted exactly, from what was collected.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/encoding/changes.hpp"
#include "codec/encoding/class_model.hpp"

namespace deltarelay::codec {

class ClassSample {
 public:
  /// Looks at some pieces of a block, about `elements_wanted` elements in all.
  void add(unsigned width, Bytes base, Bytes next, std::size_t elements_wanted);
  [[nodiscard]] std::uint64_t changes() const noexcept { return changed_; }
  /// A model without frequencies: the classes and low bits that make gaps cheapest, the contexts that make steps
  /// cheapest, as many as their tables are worth.
  [[nodiscard]] ClassModel fit() const;

 private:
  static constexpr std::size_t sampled_tokens = 32;  // the last stands for all larger steps
  // Neighbouring keys that no boundary may part, with what the sample saw of them.
  struct Bucket {
    std::uint8_t first_key = 0;
    double members = 0, changes = 0;
    std::array<std::uint32_t, sampled_tokens> steps{};
  };
  [[nodiscard]] std::vector<Bucket> buckets() const;

  std::array<std::uint32_t, 256> members_{};                            // by key
  std::array<std::array<std::uint32_t, sampled_tokens>, 256> steps_{};  // of the changes, by key
  std::uint64_t counted_ = 0;                                           // elements whose keys are in members_
  std::uint64_t scanned_ = 0, changed_ = 0;                             // elements compared, and changes among them
  std::uint64_t elements_ = 0;                                          // of the blocks
};

}  // namespace deltarelay::codec
