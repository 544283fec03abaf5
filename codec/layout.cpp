#include "codec/layout.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();

bool block_bytes_valid(std::uint32_t bytes) noexcept {
  return std::has_single_bit(bytes) && bytes >= block_bytes_min && bytes <= block_bytes_max;
}

}  // namespace

Result<std::uint64_t> tensor_bytes(DType dtype, std::span<const std::uint64_t> shape) noexcept {
  std::uint64_t elements = 1;
  for (std::uint64_t dimension : shape)
    if (__builtin_mul_overflow(elements, dimension, &elements)) return errc::tensor_size_overflow;
  std::uint64_t bits = 0;
  if (__builtin_mul_overflow(elements, std::uint64_t{dtype_bits(dtype)}, &bits)) return errc::tensor_size_overflow;
  if (bits % 8 != 0) return errc::tensor_size_mismatch;
  return bits / 8;
}

Result<Layout> Layout::make(std::vector<TensorSpec> tensors, std::uint32_t block_bytes) {
  if (!block_bytes_valid(block_bytes)) return errc::malformed_payload;
  if (tensors.size() > tensor_count_max) return errc::table_too_large;
  std::ranges::sort(tensors, {}, &TensorSpec::name);
  if (std::ranges::adjacent_find(tensors, {}, &TensorSpec::name) != tensors.end()) return errc::malformed_payload;

  Layout layout;
  layout.block_bytes_ = block_bytes;
  layout.first_block_.reserve(tensors.size() + 1);
  layout.first_block_.push_back(0);
  for (TensorSpec& tensor : tensors) {
    if (tensor.shape.size() > tensor_rank_max) return errc::table_too_large;
    auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
    if (!bytes) return bytes.error();
    tensor.bytes = *bytes;
    const std::uint64_t blocks = *bytes / block_bytes + (*bytes % block_bytes != 0);
    if (blocks > std::numeric_limits<std::uint32_t>::max()) return errc::table_too_large;
    if (*bytes > u64_max - layout.total_bytes_) return errc::malformed_payload;
    layout.total_bytes_ += *bytes;
    layout.first_block_.push_back(layout.first_block_.back() + blocks);
  }
  layout.tensors_ = std::move(tensors);
  layout.digest_ = digest_of(Bytes{layout.encode()});
  return layout;
}

std::size_t Layout::find(std::string_view name) const noexcept {
  auto at = std::ranges::lower_bound(tensors_, name, {}, [](const TensorSpec& t) { return std::string_view{t.name}; });
  if (at == tensors_.end() || at->name != name) return tensors_.size();
  return static_cast<std::size_t>(at - tensors_.begin());
}

std::uint32_t Layout::block_count(TensorIndex tensor) const {
  const std::size_t t = raw(tensor);
  return static_cast<std::uint32_t>(first_block_.at(t + 1) - first_block_.at(t));
}

bool Layout::contains(BlockId id) const noexcept {
  const std::size_t t = raw(id.tensor);
  return t < tensors_.size() && raw(id.block) < first_block_[t + 1] - first_block_[t];
}

std::size_t Layout::size_of(BlockId id) const {
  const std::uint64_t left = tensor(id.tensor).bytes - offset_of(id);
  return static_cast<std::size_t>(std::min<std::uint64_t>(left, block_bytes_));
}

std::uint64_t Layout::offset_of(BlockId id) const {
  return std::uint64_t{raw(id.block)} * block_bytes_;
}

std::uint64_t Layout::ordinal(BlockId id) const {
  return first_block_.at(raw(id.tensor)) + raw(id.block);
}

BlockId Layout::block_at(std::uint64_t ordinal) const {
  // The last tensor that begins at or before it: tensors without blocks share a first block with their successor.
  auto after = std::ranges::upper_bound(first_block_, ordinal);
  const auto t = static_cast<std::size_t>(after - first_block_.begin()) - 1;
  return {TensorIndex{static_cast<std::uint32_t>(t)},
          BlockIndex{static_cast<std::uint32_t>(ordinal - first_block_[t])}};
}

}  // namespace deltarelay::codec
