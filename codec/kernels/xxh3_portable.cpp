// XXH3-128 for every processor of the architecture (SSE2 on x86-64, NEON on ARM).
#include "codec/kernels/xxh3.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deltarelay::codec::kernels {

void xxh3_portable(const void* data, size_t size, unsigned char* out) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
  for (size_t i = 0; i < sizeof canonical.digest; ++i) out[i] = canonical.digest[i];
}

}  // namespace deltarelay::codec::kernels
