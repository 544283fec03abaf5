// XXH3-128, compiled with the AVX2 options (codec/CMakeLists.txt). Reached through digest.cpp's dispatch only.
#include "codec/kernels/xxh3.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deltarelay::codec::kernels {

void xxh3_avx2(const void* data, size_t size, unsigned char* out) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
  for (size_t i = 0; i < sizeof canonical.digest; ++i) out[i] = canonical.digest[i];
}

}  // namespace deltarelay::codec::kernels
