// Raw: the new bytes as they are. The encoding that always fits, and never needs a base.
#pragma once

#include <vector>

#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

void encode_raw(Bytes next, std::vector<std::byte>& out);
/// Errors: block_size_mismatch.
[[nodiscard]] Result<void> decode_raw(Bytes data, MutableBytes out) noexcept;

}  // namespace deltarelay::codec
