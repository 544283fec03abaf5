// XXH3-128 for every processor of the architecture (SSE2 on x86-64, NEON on ARM).
#include "codec/kernels/xxh3_kernels.hpp"

namespace deltarelay::codec::kernels {

const Xxh3Kernels xxh3_portable = xxh3_here;

}  // namespace deltarelay::codec::kernels
