// XOR + LZ4: the mask of changed bits, LZ4-coded. For changes that repeat (a whole tensor shifted by one value) or fill
// long runs, which steps do not shorten. Any dtype.
#pragma once

#include <vector>

#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

/// Appends and returns true, or leaves `out` as it was when the result would be larger than `bytes_max`. `mask` is
/// scratch memory. REQUIRES equal sizes.
[[nodiscard]] bool encode_xor_lz4(Bytes base, Bytes next, std::size_t bytes_max, std::vector<std::byte>& mask,
                                  std::vector<std::byte>& out);
/// REQUIRES base.size() == out.size(). Errors as decode_lz4().
[[nodiscard]] Result<void> decode_xor_lz4(Bytes data, Bytes base, MutableBytes out) noexcept;

}  // namespace deltarelay::codec
