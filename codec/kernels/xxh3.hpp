// XXH3-128 compiled once per CPU level: the library's own build runs at half the speed of the widest one.
//
// Included by files that are compiled for newer processors than the program may run on, so nothing but plain
// declarations may stand here: an inline function of a standard header would be merged across those files by the
// linker.
#pragma once

#include <stddef.h>

namespace deltarelay::codec::kernels {

inline constexpr size_t xxh3_block_bytes = 1024;

/// A digest that is fed piece by piece.
struct Xxh3State {
  alignas(64) unsigned long long accumulators[8];
  alignas(64) unsigned char held[64 + xxh3_block_bytes];  ///< the stripe before what is held back, and that
  size_t held_bytes;
  unsigned long long bytes;  ///< in all
};

/// One build of XXH3-128, seed 0. `out` gets the 16 canonical bytes (big-endian, high half first). A state belongs to
/// the set that reset it.
struct Xxh3Kernels {
  void (*digest)(const void* data, size_t size, unsigned char* out);
  void (*reset)(Xxh3State* state);
  void (*update)(Xxh3State* state, const void* data, size_t size);
  void (*finish)(const Xxh3State* state, unsigned char* out);
};

extern const Xxh3Kernels xxh3_portable;
#if defined(__x86_64__)
extern const Xxh3Kernels xxh3_avx2;
extern const Xxh3Kernels xxh3_avx512;
#endif

}  // namespace deltarelay::codec::kernels
