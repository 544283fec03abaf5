// XXH3-128, compiled with the AVX512 options (codec/CMakeLists.txt). Reached through digest.cpp's dispatch only.
#include "codec/kernels/xxh3_kernels.hpp"

namespace deltarelay::codec::kernels {

const Xxh3Kernels xxh3_avx512 = xxh3_here;

}  // namespace deltarelay::codec::kernels
