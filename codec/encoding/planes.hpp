// Planes: the bytes of all elements sorted by their place in the element, each plane entropy-coded where that pays. For
// weights without a base (first sync, repair) or without likeness to it. FORMAT.md, "planes".
//
// Elements are first rotated by one bit, so that the exponent of BF16 and F32 is a plane of its own: it holds under
// three bits of information, everything below it next to eight. Neighbours add nothing, so order 0 is all there is to
// gain.
#pragma once

#include <array>
#include <vector>

#include "codec/encoding/frequencies.hpp"
#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

inline constexpr unsigned planes_max = 8;
/// Elements split or joined at a time; a multiple of the lanes, so that the rounds of a plane go on from tile to tile.
inline constexpr std::size_t planes_tile = 8192;
static_assert(planes_tile % kernels::rans_lanes_max == 0);

/// Reuses its buffers; one per worker.
class PlanesEncoder {
 public:
  /// Appends and returns true, or leaves `out` as it was when the result would be larger than `bytes_max`.
  /// REQUIRES next.size() a multiple of `width`.
  [[nodiscard]] bool encode(Bytes next, unsigned width, std::size_t bytes_max, std::vector<std::byte>& out);

 private:
  struct Plane {
    Frequencies frequencies;
    bool coded = false;
  };
  void append_raw(Bytes next, unsigned width, unsigned plane, std::vector<std::byte>& out);
  void append_coded(Bytes next, unsigned width, unsigned plane, std::vector<std::byte>& out);

  std::array<Plane, planes_max> planes_;
  std::vector<std::byte> words_;
};

/// Reuses its buffers; one per worker.
class PlanesDecoder {
 public:
  /// REQUIRES out.size() a multiple of `width`. Errors: truncated, trailing_bytes, malformed_payload.
  [[nodiscard]] Result<void> decode(Bytes data, unsigned width, MutableBytes out);

 private:
  struct Plane {
    Bytes raw;  ///< empty where the plane is coded
    kernels::RansDecoding coder;
    std::array<std::uint32_t, kernels::rans_one> slots;
  };
  std::vector<Plane> planes_;
  std::vector<std::uint8_t> tile_;
};

}  // namespace deltarelay::codec
