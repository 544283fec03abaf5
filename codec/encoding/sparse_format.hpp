// Constants of the sparse encoding that its two halves share. FORMAT.md, "sparse".
#pragma once

#include <cstddef>

#include "codec/limits.hpp"

namespace deltarelay::codec::sparse_format {

// A gap's quotient is that many zeros and a one; from 24 zeros on the whole gap follows in 22 bits, so that one code
// never passes 47 bits and one look at the stream is enough for it.
inline constexpr unsigned quotient_escape = 24;
inline constexpr unsigned escaped_gap_bits = 22;
inline constexpr unsigned rice_bits_max = 21;
static_assert((std::size_t{1} << escaped_gap_bits) >= block_bytes_max);

}  // namespace deltarelay::codec::sparse_format
