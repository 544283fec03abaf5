#include "codec/encoding/raw.hpp"

#include <cstring>

#include "codec/bytes.hpp"

namespace deltarelay::codec {

void encode_raw(Bytes next, std::vector<std::byte>& out) {
  ByteWriter(out).bytes(next);
}

Result<void> decode_raw(Bytes data, MutableBytes out) noexcept {
  if (data.size() != out.size()) return errc::block_size_mismatch;
  if (!data.empty()) std::memcpy(out.data(), data.data(), data.size());
  return {};
}

}  // namespace deltarelay::codec
