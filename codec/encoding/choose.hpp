// Which encoding a block gets: the smallest that pays, found without trying them all.
//
// The change count decides most blocks: few changes are sparse (or, where the receiver's old exponents help, class).
// Only when the exact cost of that is near the raw size are the byte codes tried, and raw is what is left.
// Costs are measured, never believed: sparse knows its exact size before it writes a byte.
#pragma once

#include <vector>

#include "codec/encoding/changes.hpp"
#include "codec/encoding/sparse.hpp"
#include "codec/frame.hpp"

namespace deltarelay::codec {

/// Encodes single blocks, each on its own. One per worker: owns scratch memory.
class BlockEncoder {
 public:
  /// A block that differs from its base: appends its code to `out` and says which one it is. At most block.next.size()
  /// bytes.
  [[nodiscard]] Encoding encode_change(const ScannedBlock& block, std::vector<std::byte>& out);
  /// A block without a base.
  [[nodiscard]] Encoding encode_whole(Bytes next, std::vector<std::byte>& out);

 private:
  [[nodiscard]] Encoding encode_dense_change(const ScannedBlock& block, std::size_t sparse_bytes,
                                             std::vector<std::byte>& out);
  SparseEncoder sparse_;
  std::vector<std::byte> mask_, trial_;
};

}  // namespace deltarelay::codec
