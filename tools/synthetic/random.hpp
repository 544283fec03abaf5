// Random numbers by position: element i of a named stream is a pure function of (seed, purpose, name, i).
//
// Why not a generator with a state: chunks of a tensor are drawn by several threads in any order, and a tensor must
// come out the same however it is cut into shards. Only integer arithmetic and exact float operations, so that the
// numbers do not depend on the compiler, the processor or its libm. Pure, thread-safe, not for cryptography.
#pragma once

#include <cstdint>
#include <string_view>

namespace deltarelay::synthetic {

class NumberStream {
 public:
  /// `purpose` keeps the weights of a tensor apart from its updates, `name` one tensor from another.
  NumberStream(std::uint64_t seed, std::string_view purpose, std::string_view name);

  /// 64 well-mixed bits (the finaliser of SplitMix64 over a Weyl sequence).
  [[nodiscard]] std::uint64_t bits(std::uint64_t index) const noexcept {
    std::uint64_t z = key_ + index * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Mean 0, variance 1, within -3 and 3: the sum of three uniform numbers. Bounded like an Adam step.
  [[nodiscard]] float bell(std::uint64_t index) const noexcept { return bell_of(bits(index)); }
  /// Mean 0, variance 1, close to normal up to four standard deviations: the sum of six uniform numbers.
  [[nodiscard]] float normal(std::uint64_t index) const noexcept {
    return (bell_of(bits(2 * index)) + bell_of(bits(2 * index + 1))) * 0.70710678F;
  }
  /// Between -0.5 and 0.5.
  [[nodiscard]] float centred(std::uint64_t index) const noexcept {
    return static_cast<float>(static_cast<std::int32_t>(bits(index) >> 40) - (1 << 23)) * 0x1p-24F;
  }

 private:
  /// Three fields of 21 bits; their sum, doubled and centred, is below 2^24, so that the float holds it exactly.
  [[nodiscard]] static float bell_of(std::uint64_t z) noexcept {
    constexpr std::uint64_t field = (1u << 21) - 1;
    const auto sum = static_cast<std::int32_t>((z & field) + ((z >> 21) & field) + ((z >> 42) & field));
    return static_cast<float>(2 * sum - 3 * static_cast<std::int32_t>(field)) * 0x1p-21F;
  }
  std::uint64_t key_;
};

}  // namespace deltarelay::synthetic
