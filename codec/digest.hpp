// XXH3-128 digests of blocks and of lists of digests: the guard against accidents (never against adversaries, for
// those see signature.hpp).
//
// Thread-safe, allocation-free. The byte order is that of xxhsum and of XXH128_canonicalFromHash: big-endian high half
// first, so that the digests we print equal those of `xxhsum -H2`.
#pragma once

#include <array>
#include <compare>
#include <span>
#include <string>

#include "codec/kernels/xxh3.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

struct Digest {
  std::array<std::byte, 16> bytes{};
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

/// XXH3-128, seed 0, of `data`; the same for any split of the data (streaming equals one-shot).
[[nodiscard]] Digest digest_of(Bytes data) noexcept;

/// The digest of bytes that come piece by piece: what is written or read is hashed while it is in the nearest cache.
class DigestStream {
 public:
  DigestStream() noexcept { reset(); }
  void reset() noexcept;
  void update(Bytes data) noexcept;
  /// Of everything since reset(); more may follow.
  [[nodiscard]] Digest digest() const noexcept;

 private:
  kernels::Xxh3State state_;
};

/// Digest of the concatenated 16-byte digests: the digest of a tensor, or of a whole image.
[[nodiscard]] Digest digest_of(std::span<const Digest> list) noexcept;

/// 32 lower-case hex digits, as xxhsum prints them.
[[nodiscard]] std::string to_hex(const Digest& digest);

}  // namespace deltarelay::codec
