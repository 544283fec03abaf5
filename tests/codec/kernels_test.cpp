// SIMD kernels against the scalar ones: same bytes out, at every tail and alignment.
#include <doctest/doctest.h>
#include <xxhash.h>

#include <bit>

#include "codec/digest.hpp"
#include "codec/kernels/cpu.hpp"
#include "codec/kernels/scan.hpp"
#include "codec/kernels/xxh3.hpp"
#include "tests/codec/octets.hpp"

using namespace deltarelay::codec;
using namespace deltarelay::codec::kernels;
using deltarelay::tests::Exact;
using deltarelay::tests::pattern;

namespace {

bool runs(CpuLevel level) {
  if (cpu_level() >= level) return true;
  MESSAGE("this processor lacks the kernel; skipped");
  return false;
}

void check_scan(ScanKernel kernel) {
  for (const unsigned width : {1u, 2u, 4u, 8u}) {
    const std::size_t words = 9, elements = words * 64;
    const auto base = pattern(elements * width, width);
    auto next = base;
    std::vector<std::uint64_t> expected(words);
    // Every byte of an element in turn, by every single bit.
    for (std::size_t element = 0; element < elements; element += 1 + element % 5) {
      next[element * width + element % width] ^= std::byte{1} << (element % 8);
      expected[element / 64] |= std::uint64_t{1} << (element % 64);
    }
    std::size_t count = 0;
    for (const auto word : expected) count += static_cast<std::size_t>(std::popcount(word));
    const Exact a(base), b(next);
    std::vector<std::uint64_t> mask(words, ~std::uint64_t{0});
    CHECK(kernel(a.bytes().data(), b.bytes().data(), words, width, mask.data()) == count);
    CHECK(mask == expected);
  }
}

void check_xxh3(const Xxh3Kernels& kernels) {
  const auto data = pattern(5000, 1);
  for (std::size_t size = 0; size <= data.size(); size += size < 300 ? 1 : 97) {
    const Exact input(Bytes(data).first(size));
    XXH128_canonical_t expected;
    XXH128_canonicalFromHash(&expected, XXH3_128bits(data.data(), size));
    unsigned char out[16];
    kernels.digest(input.bytes().data(), size, out);
    CHECK(std::equal(out, out + 16, expected.digest));
    // In pieces of growing size, the last of them nothing.
    Xxh3State state;
    kernels.reset(&state);
    std::size_t at = 0;
    for (std::size_t piece = 1; at < size; piece = piece * 2 + 1) {
      const Exact part(Bytes(data).subspan(at, std::min(piece, size - at)));
      kernels.update(&state, part.bytes().data(), part.bytes().size());
      at += part.bytes().size();
    }
    kernels.update(&state, nullptr, 0);
    kernels.finish(&state, out);
    CHECK(std::equal(out, out + 16, expected.digest));
  }
}

}  // namespace

TEST_SUITE("codec/kernels") {
  TEST_CASE("scan, portable") {
    check_scan(scan_portable);
  }
  TEST_CASE("digest, portable, equals the library's") {
    check_xxh3(xxh3_portable);
  }
#if defined(__x86_64__)
  TEST_CASE("scan, AVX2") {
    if (runs(CpuLevel::avx2)) check_scan(scan_avx2);
  }
  TEST_CASE("scan, AVX-512") {
    if (runs(CpuLevel::avx512)) check_scan(scan_avx512);
  }
  TEST_CASE("digest, AVX2, equals the library's") {
    if (runs(CpuLevel::avx2)) check_xxh3(xxh3_avx2);
  }
  TEST_CASE("digest, AVX-512, equals the library's") {
    if (runs(CpuLevel::avx512)) check_xxh3(xxh3_avx512);
  }
#endif

  TEST_CASE("the scan finds single changes in blocks of every size, at any alignment, and reads nothing past them") {
    for (const unsigned width : {1u, 2u, 4u, 8u}) {
      for (std::size_t elements = 1; elements < 200; ++elements) {
        const auto base = pattern(elements * width, elements);
        auto next = base;
        next[(elements - 1) * width] ^= std::byte{4};
        const Exact a(base), b(next);
        std::vector<std::uint64_t> mask(mask_words(elements), 0);
        CHECK(scan_changes(a.bytes(), b.bytes(), width, mask.data()) == 1);
        CHECK(mask.back() == std::uint64_t{1} << ((elements - 1) % 64));
        CHECK(scan_changes(a.bytes(), a.bytes(), width, mask.data()) == 0);
      }
    }
  }

  TEST_CASE("a digest stream begins anew at reset, and goes on after it was asked") {
    const auto data = pattern(3000, 7);
    DigestStream stream;
    stream.update(Bytes(data).first(100));
    stream.reset();
    CHECK(stream.digest() == digest_of(Bytes{}));
    stream.update(Bytes(data).first(2000));
    CHECK(stream.digest() == digest_of(Bytes(data).first(2000)));
    stream.update(Bytes(data).subspan(2000));
    CHECK(stream.digest() == digest_of(Bytes(data)));
  }

  TEST_CASE("digests print as xxhsum -H2 prints them") {
    CHECK(to_hex(digest_of(Bytes{})) == "99aa06d3014798d86001c324468d497f");
  }
}
