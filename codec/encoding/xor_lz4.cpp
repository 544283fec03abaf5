#include "codec/encoding/xor_lz4.hpp"

#include "codec/encoding/lz4.hpp"

namespace deltarelay::codec {
namespace {

// Written so that the compiler turns it into full vectors.
void exclusive_or(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] ^ b[i];
}

}  // namespace

bool encode_xor_lz4(Bytes base, Bytes next, std::size_t bytes_max, std::vector<std::byte>& mask,
                    std::vector<std::byte>& out) {
  mask.resize(next.size());
  exclusive_or(base.data(), next.data(), mask.data(), mask.size());
  return encode_lz4(mask, bytes_max, out);
}

Result<void> decode_xor_lz4(Bytes data, Bytes base, MutableBytes out) noexcept {
  if (auto mask = decode_lz4(data, out); !mask) return mask;
  exclusive_or(out.data(), base.data(), out.data(), out.size());
  return {};
}

}  // namespace deltarelay::codec
