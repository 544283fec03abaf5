// The functions of one build of XXH3-128: included by each of the files that are compiled for a CPU level, and by
// nothing else. All of it has internal linkage, so that the builds do not mix (kernels/xxh3.hpp).
//
// The stream is not the library's: that one keeps its accumulators in memory, which at this speed costs more than the
// hashing. It is built of the same steps, whole blocks of 1 KiB at a time with the accumulators in registers.
#pragma once

#include "codec/kernels/xxh3.hpp"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

namespace deltarelay::codec::kernels {
namespace {

constexpr size_t stripe_bytes = 64, secret_bytes = sizeof XXH3_kSecret;
constexpr size_t block_stripes = (secret_bytes - stripe_bytes) / 8;
static_assert(block_stripes * stripe_bytes == xxh3_block_bytes);

void put(XXH128_hash_t hash, unsigned char* out) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  for (size_t i = 0; i < sizeof canonical.digest; ++i) out[i] = canonical.digest[i];
}

void digest(const void* data, size_t size, unsigned char* out) {
  put(XXH3_128bits(data, size), out);
}

void reset(Xxh3State* state) {
  alignas(64) const unsigned long long initial[] = XXH3_INIT_ACC;
  static_assert(sizeof initial == sizeof state->accumulators);
  memcpy(state->accumulators, initial, sizeof initial);
  state->bytes = 0;
  state->held_bytes = 0;
}

void use_blocks(Xxh3State* state, const unsigned char* data, size_t blocks) {
  alignas(64) unsigned long long accumulators[8];
  memcpy(accumulators, state->accumulators, sizeof accumulators);
  for (size_t block = 0; block < blocks; ++block, data += xxh3_block_bytes) {
    for (size_t stripe = 0; stripe < block_stripes; ++stripe)
      XXH3_accumulate_512(accumulators, data + stripe * stripe_bytes, XXH3_kSecret + stripe * 8);
    XXH3_scrambleAcc(accumulators, XXH3_kSecret + secret_bytes - stripe_bytes);
  }
  memcpy(state->accumulators, accumulators, sizeof accumulators);
}

// What may be the last block is held back, with the stripe before it: the last stripe of all is taken once more.
void update(Xxh3State* state, const void* data, size_t size) {
  const unsigned char* in = static_cast<const unsigned char*>(data);
  unsigned char* const held = state->held + stripe_bytes;
  state->bytes += size;
  if (state->held_bytes + size <= xxh3_block_bytes) {
    if (size != 0) memcpy(held + state->held_bytes, in, size);
    state->held_bytes += size;
    return;
  }
  if (state->held_bytes != 0) {
    const size_t missing = xxh3_block_bytes - state->held_bytes;
    memcpy(held + state->held_bytes, in, missing);
    in += missing;
    size -= missing;
    use_blocks(state, held, 1);
    memcpy(state->held, held + xxh3_block_bytes - stripe_bytes, stripe_bytes);
  }
  const size_t blocks = (size - 1) / xxh3_block_bytes;
  if (blocks != 0) {
    use_blocks(state, in, blocks);
    in += blocks * xxh3_block_bytes;
    size -= blocks * xxh3_block_bytes;
    memcpy(state->held, in - stripe_bytes, stripe_bytes);
  }
  memcpy(held, in, size);
  state->held_bytes = size;
}

void finish(const Xxh3State* state, unsigned char* out) {
  const unsigned char* const held = state->held + stripe_bytes;
  if (state->bytes <= xxh3_block_bytes) return digest(held, state->held_bytes, out);
  alignas(64) XXH64_hash_t accumulators[8];
  memcpy(accumulators, state->accumulators, sizeof accumulators);
  for (size_t stripe = 0; stripe < (state->held_bytes - 1) / stripe_bytes; ++stripe)
    XXH3_accumulate_512(accumulators, held + stripe * stripe_bytes, XXH3_kSecret + stripe * 8);
  XXH3_accumulate_512(accumulators, held + state->held_bytes - stripe_bytes,
                      XXH3_kSecret + secret_bytes - stripe_bytes - XXH_SECRET_LASTACC_START);
  XXH128_hash_t hash;
  hash.low64 = XXH3_mergeAccs(accumulators, XXH3_kSecret + XXH_SECRET_MERGEACCS_START, state->bytes * XXH_PRIME64_1);
  hash.high64 =
      XXH3_mergeAccs(accumulators, XXH3_kSecret + secret_bytes - sizeof accumulators - XXH_SECRET_MERGEACCS_START,
                     ~(state->bytes * XXH_PRIME64_2));
  put(hash, out);
}

constexpr Xxh3Kernels xxh3_here{digest, reset, update, finish};

}  // namespace
}  // namespace deltarelay::codec::kernels
