// The canonical layout of a checkpoint: the table of its tensors, sorted by name, and how they are cut into blocks.
//
// Canonical coordinates are (tensor, byte range): how tensors are spread over files does not matter to the wire, so two
// hosts with other shard files share one layout. Immutable after construction; share it as `shared_ptr<const Layout>`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/digest.hpp"
#include "codec/dtype.hpp"
#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

struct TensorSpec {
  std::string name;  ///< UTF-8, compared as bytes, never normalised
  DType dtype{};
  std::vector<std::uint64_t> shape;  ///< empty: a scalar
  std::uint64_t bytes = 0;           ///< derived from dtype and shape

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// Bytes of a tensor, by the reference's arithmetic: dimensions are multiplied in order, so a huge one before a zero
/// overflows. Errors: tensor_size_overflow; tensor_size_mismatch when packed elements do not fill whole bytes.
[[nodiscard]] Result<std::uint64_t> tensor_bytes(DType dtype, std::span<const std::uint64_t> shape) noexcept;

/// A name as messages show it: quoted, control characters and invalid UTF-8 as \xNN, the middle of a long one left out.
/// Names come from files and peers; printing them raw would let them drive the operator's terminal.
[[nodiscard]] std::string display_name(std::string_view name);

/// A block by its place in the table. Ordered as the blocks of an image are.
struct BlockId {
  TensorIndex tensor{};
  BlockIndex block{};
  friend auto operator<=>(const BlockId&, const BlockId&) = default;
};

class Layout {
 public:
  /// Sorts the tensors by name and sets their `bytes`. Errors: table_too_large (also a tensor of too many blocks),
  /// malformed_payload (two equal names, block size no power of two or out of range, sizes whose sum overflows), and those
  /// of tensor_bytes().
  [[nodiscard]] static Result<Layout> make(std::vector<TensorSpec> tensors, std::uint32_t block_bytes);

  [[nodiscard]] std::span<const TensorSpec> tensors() const noexcept { return tensors_; }
  [[nodiscard]] const TensorSpec& tensor(TensorIndex index) const { return tensors_.at(raw(index)); }
  /// Binary search by name; nullopt-like: tensors().size() when absent.
  [[nodiscard]] std::size_t find(std::string_view name) const noexcept;

  [[nodiscard]] std::uint32_t block_bytes() const noexcept { return block_bytes_; }
  [[nodiscard]] std::uint64_t total_bytes() const noexcept { return total_bytes_; }
  /// Blocks of all tensors; also the length of an image's digest table.
  [[nodiscard]] std::uint64_t block_count() const noexcept { return first_block_.back(); }
  [[nodiscard]] std::uint32_t block_count(TensorIndex tensor) const;
  [[nodiscard]] bool contains(BlockId id) const noexcept;
  /// Bytes of one block: block_bytes(), or less for the last of a tensor. REQUIRES contains(id).
  [[nodiscard]] std::size_t size_of(BlockId id) const;
  /// Offset of a block within its tensor's bytes. REQUIRES contains(id).
  [[nodiscard]] std::uint64_t offset_of(BlockId id) const;
  /// Place of a block in the digest table, 0 .. block_count()-1. REQUIRES contains(id).
  [[nodiscard]] std::uint64_t ordinal(BlockId id) const;
  /// Inverse of ordinal(). REQUIRES ordinal < block_count().
  [[nodiscard]] BlockId block_at(std::uint64_t ordinal) const;

  /// XXH3-128 over the encoded table (FORMAT.md, "Layout"): equal digests mean equal names, dtypes, shapes, block size.
  [[nodiscard]] const Digest& digest() const noexcept { return digest_; }
  /// The encoded table, as BEGIN and LAYOUT carry it.
  [[nodiscard]] std::vector<std::byte> encode() const;
  /// Decodes what encode() wrote; refuses too few and left-over bytes, unsorted names and sizes past limits.hpp.
  [[nodiscard]] static Result<Layout> decode(Bytes in);

 private:
  Layout() = default;
  std::vector<TensorSpec> tensors_;
  std::vector<std::uint64_t> first_block_;  // tensors_.size() + 1 entries; ordinal of each tensor's first block
  std::uint32_t block_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
  Digest digest_;
};

/// What differs between two layouts, one sentence per tensor, at most `max` of them and then one that counts the rest:
/// `missing: "a"` (only here), `unexpected: "a"` (only there), `"a": shape [4,8] here, [4,9] there`. Empty when equal.
[[nodiscard]] std::vector<std::string> describe_difference(const Layout& here, const Layout& there, std::size_t max = 20);

}  // namespace deltarelay::codec
