// Digests by the fastest XXH3 that this processor runs (kernels/xxh3.hpp); the result does not depend on which.
#include "codec/digest.hpp"

#include "codec/kernels/cpu.hpp"
#include "codec/kernels/xxh3.hpp"

namespace deltarelay::codec {
namespace {

const kernels::Xxh3Kernels& kernels_here() noexcept {
#if defined(__x86_64__)
  switch (kernels::cpu_level()) {
    case kernels::CpuLevel::avx512:
      return kernels::xxh3_avx512;
    case kernels::CpuLevel::avx2:
      return kernels::xxh3_avx2;
    case kernels::CpuLevel::portable:
      break;
  }
#endif
  return kernels::xxh3_portable;
}

unsigned char* bytes_of(Digest& digest) noexcept {
  return reinterpret_cast<unsigned char*>(digest.bytes.data());
}

}  // namespace

Digest digest_of(Bytes data) noexcept {
  Digest out;
  kernels_here().digest(data.data(), data.size(), bytes_of(out));
  return out;
}

void DigestStream::reset() noexcept {
  kernels_here().reset(&state_);
}

void DigestStream::update(Bytes data) noexcept {
  kernels_here().update(&state_, data.data(), data.size());
}

Digest DigestStream::digest() const noexcept {
  Digest out;
  kernels_here().finish(&state_, bytes_of(out));
  return out;
}

Digest digest_of(std::span<const Digest> list) noexcept {
  static_assert(sizeof(Digest) == 16);
  return digest_of(std::as_bytes(list));
}

std::string to_hex(const Digest& digest) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * digest.bytes.size());
  for (std::byte b : digest.bytes) {
    out += digits[std::to_integer<unsigned>(b) >> 4];
    out += digits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

}  // namespace deltarelay::codec
