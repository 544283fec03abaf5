// One optimizer step over a run of elements: masters move, stored values are rounded anew, changes are counted.
//
// Layer: tools/synthetic. Pure but for its outputs. Invariant: a frozen element's stored bits are copied, never
// rounded.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/synthetic/step_size.hpp"
#include "tools/synthetic/trainer.hpp"
#include "tools/synthetic/training_source.hpp"

namespace deltarelay::synthetic {

struct StepBuffers {
  std::vector<std::byte> stored, masters;
};

template <class Format>
void count_change(typename Format::Bits before, typename Format::Bits after, StepCounts& counts) noexcept {
  ++counts.changed;
  if constexpr (sizeof(before) == 2) {
    const auto step = static_cast<std::int16_t>(static_cast<std::uint16_t>(after - before));
    const int distance = step < 0 ? -static_cast<int>(step) : step;
    ++counts.narrow_changed;
    ++counts.by_distance[distance == 1 ? 0 : distance == 2 ? 1 : distance <= 7 ? 2 : 3];
  }
}

/// Elements [first, first + count) of a tensor, into `out`. False when a kept master does not round to its stored
/// value.
template <class Format>
[[nodiscard]] bool step_run(const MasterReader<Format>& source, const NumberStream& updates, float size,
                            std::uint64_t first, std::size_t count, StepBuffers& out, StepCounts& counts) {
  using Bits = typename Format::Bits;
  out.stored.resize(count * sizeof(Bits));
  out.masters.resize(count * sizeof(float));
  bool consistent = true;
  for (std::size_t i = 0; i < count; ++i) {
    const Bits before = source.stored(first + i);
    float master = source.master(first + i);
    Bits after = before;
    if (!frozen(master)) {
      if (source.kept()) consistent &= Format::round(master) == before;
      const float moved = master + size * updates.bell(first + i);
      const Bits rounded = Format::round(moved);
      if ((rounded & Format::infinity) != Format::infinity) {  // the largest weights saturate
        master = moved;
        after = rounded;
      }
    }
    codec::store_le(out.stored.data() + i * sizeof(Bits), after);
    codec::store_le(out.masters.data() + i * sizeof(float), std::bit_cast<std::uint32_t>(master));
    const std::size_t exponent = (std::bit_cast<std::uint32_t>(Format::widen(before)) >> 23) & 0xffu;
    if constexpr (sizeof(Bits) == 2) ++counts.exponent_elements[exponent];
    if (after != before) {
      count_change<Format>(before, after, counts);
      if constexpr (sizeof(Bits) == 2) ++counts.exponent_changed[exponent];
    }
  }
  counts.elements += count;
  return consistent;
}

}  // namespace deltarelay::synthetic
