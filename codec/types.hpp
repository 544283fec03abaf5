// The identifiers of the product as types of their own, so that a stripe cannot be passed for a version.
//
// Layer: codec; used by every other layer. Header only, no dependencies.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace deltarelay::codec {

/// A checkpoint version: strictly increasing per mesh, never reused, 0 means "no version".
enum class Version : std::uint64_t {};
/// Rises when a root restarts or is replaced; the higher epoch fences the lower one.
enum class Epoch : std::uint64_t {};
/// One ordered part of a refit's frames.
enum class StripeId : std::uint16_t {};
/// Place of a record in one stripe of one refit; BEGIN is 0.
enum class Sequence : std::uint64_t {};
/// Place of a tensor in the canonical tensor table (tensors sorted by the bytes of their names).
enum class TensorIndex : std::uint32_t {};
/// Place of a block within its tensor.
enum class BlockIndex : std::uint32_t {};

/// The underlying number of a strong id.
template <class Id>
[[nodiscard]] constexpr auto raw(Id id) noexcept {
  return static_cast<std::underlying_type_t<Id>>(id);
}
template <class Id>
[[nodiscard]] constexpr Id next(Id id) noexcept {
  return Id{static_cast<std::underlying_type_t<Id>>(raw(id) + 1)};
}

/// Identity of one fleet: 16 random bytes, made once by `relayctl cert init-ca`.
struct MeshId {
  std::array<std::byte, 16> bytes{};
  friend auto operator<=>(const MeshId&, const MeshId&) = default;
};

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

}  // namespace deltarelay::codec
