// XXH3-128 compiled once per CPU level: the library's own build runs at half the speed of the widest one.
//
// Included by files that are compiled for newer processors than the program may run on, so nothing but plain
// declarations may stand here: an inline function of a standard header would be merged across those files by the
// linker.
#pragma once

#include <stddef.h>

namespace deltarelay::codec::kernels {

/// `out` gets the 16 canonical bytes (big-endian, high half first).
using Xxh3Kernel = void (*)(const void* data, size_t size, unsigned char* out);

void xxh3_portable(const void* data, size_t size, unsigned char* out);
#if defined(__x86_64__)
void xxh3_avx2(const void* data, size_t size, unsigned char* out);
void xxh3_avx512(const void* data, size_t size, unsigned char* out);
#endif

}  // namespace deltarelay::codec::kernels
