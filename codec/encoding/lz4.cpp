#include "codec/encoding/lz4.hpp"

#include <lz4.h>

#include <algorithm>

#include "codec/limits.hpp"

namespace deltarelay::codec {

static_assert(block_bytes_max <= LZ4_MAX_INPUT_SIZE);

bool encode_lz4(Bytes next, std::size_t bytes_max, std::vector<std::byte>& out) {
  const std::size_t before = out.size();
  out.resize(before + std::min(bytes_max, static_cast<std::size_t>(LZ4_COMPRESSBOUND(block_bytes_max))));
  const int written =
      LZ4_compress_default(reinterpret_cast<const char*>(next.data()), reinterpret_cast<char*>(out.data() + before),
                           static_cast<int>(next.size()), static_cast<int>(out.size() - before));
  out.resize(before + static_cast<std::size_t>(std::max(written, 0)));
  return written > 0;
}

Result<void> decode_lz4(Bytes data, MutableBytes out) noexcept {
  if (data.size() > static_cast<std::size_t>(LZ4_MAX_INPUT_SIZE) || out.size() > block_bytes_max) {
    return errc::malformed_payload;
  }
  const int written =
      LZ4_decompress_safe(reinterpret_cast<const char*>(data.data()), reinterpret_cast<char*>(out.data()),
                          static_cast<int>(data.size()), static_cast<int>(out.size()));
  if (written < 0) return errc::malformed_payload;
  if (static_cast<std::size_t>(written) != out.size()) return errc::block_size_mismatch;
  return {};
}

}  // namespace deltarelay::codec
