// LZ4: one LZ4 block (no frame, no size prefix) of the new bytes. For content that repeats, where no base is of use.
#pragma once

#include <vector>

#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

/// Appends and returns true, or leaves `out` as it was when the result would be larger than `bytes_max`.
[[nodiscard]] bool encode_lz4(Bytes next, std::size_t bytes_max, std::vector<std::byte>& out);
/// Errors: malformed_payload, block_size_mismatch (decodes to fewer bytes).
[[nodiscard]] Result<void> decode_lz4(Bytes data, MutableBytes out) noexcept;

}  // namespace deltarelay::codec
