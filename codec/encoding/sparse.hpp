// Sparse: Rice-coded gaps and prefix-coded steps, in two bit streams. For blocks of which few elements changed, of any
// dtype. Format: FORMAT.md, "sparse".
//
// Two streams and not one: the decoder then follows two independent chains of bit positions, which a core overlaps.
#pragma once

#include <vector>

#include "codec/encoding/changes.hpp"
#include "codec/encoding/prefix_code.hpp"
#include "codec/errc.hpp"

namespace deltarelay::codec {

/// Reuses its buffers; one per worker.
class SparseEncoder {
 public:
  /// Measures `block`: the exact number of bytes that write() will make of it. REQUIRES block.changed_count > 0.
  [[nodiscard]] std::size_t measure(const ScannedBlock& block);
  /// Appends the block last measured to `out`.
  void write(const ScannedBlock& block, std::vector<std::byte>& out);

 private:
  template <class Element>
  void collect(const ScannedBlock& block);
  void choose_rice_bits();

  std::vector<std::uint32_t> gaps_;  // with slack
  std::vector<std::uint8_t> tokens_;
  std::vector<std::uint64_t> raws_;  // raw bits of the tokens that have some, in order; with slack
  std::vector<std::uint32_t> counts_;
  std::size_t count_ = 0;
  PrefixCode code_;
  unsigned rice_bits_ = 0;
  std::size_t gap_bytes_ = 0, step_bytes_ = 0;
};

/// Decodes into `out` over `base` (equal sizes, a multiple of `width`). `code` is scratch memory.
[[nodiscard]] Result<void> decode_sparse(Bytes data, unsigned width, Bytes base, MutableBytes out, PrefixCode& code);

}  // namespace deltarelay::codec
