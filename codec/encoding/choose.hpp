// Which encoding a block gets: the smallest that pays, found without trying them all.
//
// The change count decides most blocks: with more than a few changes the class code is never larger than sparse, whose
// gaps know nothing of the old values; a block of few changes is not worth its share of tables. Only when the cost of
// that is near the raw size are the byte codes and planes tried, and raw is what is left.
// Costs are measured, never believed: sparse knows its exact size before it writes a byte, class blocks are written
// before they are compared, and where they and their tables are small, sparse is measured beside them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "codec/encoding/changes.hpp"
#include "codec/encoding/class_code.hpp"
#include "codec/encoding/planes.hpp"
#include "codec/encoding/sparse.hpp"
#include "codec/frame.hpp"

namespace deltarelay::codec {

/// Encodes the blocks of one call, which share tables. One per worker: owns scratch memory.
class BlockEncoder {
 public:
  /// Begins with the blocks of a call. They are sampled, not kept.
  void begin(std::span<const BlockInput> blocks);
  /// Compares a block with its base. The result is good until the next scan.
  [[nodiscard]] ScannedBlock scan(const BlockInput& input);
  /// The block scanned last, which differs from its base. Either appends its code to `out` and says which one it is, or
  /// keeps what it needs to code the block with the others (finish_class): then nothing. At most block.next.size()
  /// bytes.
  [[nodiscard]] std::optional<Encoding> encode_change(const ScannedBlock& block, std::vector<std::byte>& out);
  /// A block without a base.
  [[nodiscard]] Encoding encode_whole(DType dtype, Bytes next, std::vector<std::byte>& out);

  /// One block that encode_change() has put off, in the same order.
  struct Deferred {
    const BlockInput* input = nullptr;
    Encoding encoding{};
    std::size_t begin = 0, end = 0;  ///< in `out`
  };
  /// Codes what was put off. REQUIRES one entry per block, with its input.
  void finish_class(std::span<Deferred> blocks, std::vector<std::byte>& out);
  /// Of the frames that hold class blocks of this call.
  [[nodiscard]] const std::vector<std::byte>& class_tables() const noexcept { return class_.tables(); }

 private:
  [[nodiscard]] std::optional<std::size_t> model_of(DType dtype, unsigned width) const noexcept;
  [[nodiscard]] Encoding encode_sparse_or_dense(const ScannedBlock& block, std::vector<std::byte>& out);
  // The best of the codes that know nothing of steps, in less than `bytes_to_beat`. The base may be empty.
  [[nodiscard]] std::optional<Encoding> encode_bytes(DType dtype, Bytes base, Bytes next, std::size_t bytes_to_beat,
                                                     std::vector<std::byte>& out);
  [[nodiscard]] bool sparse_is_smaller(std::span<const Deferred> blocks, std::size_t class_bytes);

  struct Group {
    DType dtype{};
    unsigned width = 1;
    ClassSample sample;
    std::optional<std::size_t> model;
  };
  std::vector<Group> groups_;
  std::size_t deferred_ = 0;
  ClassEncoder class_;
  SparseEncoder sparse_;
  PlanesEncoder planes_;
  std::vector<std::uint64_t> changed_;
  std::vector<std::byte> mask_, trial_, trial_whole_;
};

}  // namespace deltarelay::codec
