// A checkpoint to train on from: its stored values, and the FP32 masters that were kept beside it or are drawn for it.
//
// Drawn masters make a step from any checkpoint possible, such as a real one: a value that was rounded to the stored
// format lay anywhere within half a step around it, and is put there at random. That is right for one step; over many,
// kept masters are what makes a weight that has just changed likely to change back.
//
// Read-only, mapped; immutable after open(), so threads may share it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "codec/bytes.hpp"
#include "codec/checkpoint.hpp"
#include "tools/synthetic/float_format.hpp"
#include "tools/synthetic/random.hpp"

namespace deltarelay::synthetic {

class TrainingSource {
 public:
  /// Errors: what Checkpoint::open() refuses; tensor_size_mismatch when masters_path(path) is there and does not have a
  /// master for each tensor.
  [[nodiscard]] static codec::Checked<TrainingSource> open(const std::filesystem::path& path);

  [[nodiscard]] const codec::CheckpointMap& map() const noexcept { return map_; }
  [[nodiscard]] const codec::Layout& layout() const noexcept { return map_.layout(); }
  [[nodiscard]] bool masters_kept() const noexcept { return masters_.has_value(); }
  [[nodiscard]] codec::Bytes stored(codec::TensorIndex tensor) const { return map_.tensor(tensor); }
  /// Four bytes an element; empty where they have to be drawn, or the tensor is its own master.
  [[nodiscard]] codec::Bytes masters(codec::TensorIndex tensor) const;
  /// Elements of all tensors, in units of the element width.
  [[nodiscard]] std::uint64_t elements() const noexcept { return elements_; }
  [[nodiscard]] codec::Checked<void> check_unchanged() const;

 private:
  explicit TrainingSource(codec::CheckpointMap map) : map_(std::move(map)) {}
  [[nodiscard]] codec::Checked<void> bind_masters(const std::filesystem::path& path);
  codec::CheckpointMap map_;
  std::optional<codec::CheckpointMap> masters_;
  std::vector<std::uint32_t> master_of_;  // per tensor, its index among the masters; no_index without one
  std::uint64_t elements_ = 0;
};

/// The masters of one tensor, element by element.
template <class Format>
class MasterReader {
 public:
  MasterReader(codec::Bytes stored, codec::Bytes masters, std::uint64_t seed, std::string_view name)
      : stored_(stored.data()), masters_(masters.empty() ? nullptr : masters.data()), residue_(seed, "residue", name) {}

  [[nodiscard]] typename Format::Bits stored(std::uint64_t i) const noexcept {
    return codec::load_le<typename Format::Bits>(stored_ + i * sizeof(typename Format::Bits));
  }
  [[nodiscard]] bool kept() const noexcept { return masters_ != nullptr; }
  [[nodiscard]] float master(std::uint64_t i) const noexcept {
    if (masters_ != nullptr) return std::bit_cast<float>(codec::load_le<std::uint32_t>(masters_ + i * sizeof(float)));
    const auto bits = stored(i);
    const float value = Format::widen(bits);
    if constexpr (sizeof(bits) == sizeof(float)) {
      return value;
    } else {
      const auto magnitude = static_cast<typename Format::Bits>(bits & ~Format::sign_bit);
      if (magnitude == 0 || magnitude >= Format::infinity - 1) return value;
      const float above = Format::widen(static_cast<typename Format::Bits>(bits + 1));
      const float drawn = value + (above - value) * residue_.centred(i);
      // Below a power of two the spacing is half as wide: what falls outside stays on the grid.
      return Format::round(drawn) == bits ? drawn : value;
    }
  }

 private:
  const std::byte* stored_;
  const std::byte* masters_;
  NumberStream residue_;
};

/// Weights that no gradient reaches: padding and masks are stored as zeros, and nothing trains NaN or infinity.
[[nodiscard]] inline bool frozen(float master) noexcept {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(master) & 0x7fffffffu;
  return magnitude == 0 || magnitude >= 0x7f800000u;
}

}  // namespace deltarelay::synthetic
