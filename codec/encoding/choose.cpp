#include "codec/encoding/choose.hpp"

#include <algorithm>
#include <cassert>

#include "codec/bytes.hpp"
#include "codec/encoding/lz4.hpp"
#include "codec/encoding/raw.hpp"
#include "codec/encoding/xor_lz4.hpp"
#include "codec/kernels/scan.hpp"

namespace deltarelay::codec {
namespace {

// Below this share of the raw size sparse or class is taken without a look at the byte codes, which for scattered
// changes never reach it (codec measurements: xor + lz4 costs four to five times the sparse code).
constexpr std::size_t clear_percent = 50;
// LZ4 has to earn its decoding time.
constexpr std::size_t lz4_pays_percent = 95;

constexpr unsigned samples = 256;

// Fewer changes are sparse at once: class would save less than its lanes and counts take.
constexpr std::size_t class_changes_min = 64;
// A frame whose class blocks and tables are smaller than this is compared with sparse; above it the tables, some 300
// bytes, no longer matter.
constexpr std::size_t class_clear_bytes = 4096;
// Elements to look at for the classes of one call.
constexpr std::size_t class_samples = 1u << 18;

// With more than a quarter changed, collecting every step only to find that none is small would cost as much as all the
// rest: look at some elements first. True when steps take so many bits that no code of steps can win.
template <class Element>
bool steps_are_wide(const ScannedBlock& block) noexcept {
  const std::size_t elements = block.elements();
  const std::size_t stride = std::max<std::size_t>(1, elements / samples);
  std::size_t seen = 0, bits = 0;
  for (std::size_t i = 0; i < elements; i += stride) {
    const auto base = load_le<Element>(block.base.data() + i * sizeof(Element));
    const auto next = load_le<Element>(block.next.data() + i * sizeof(Element));
    if (base == next) continue;
    ++seen;
    const StepToken step = step_token(base, next);
    bits += step.raw_bits + 2u;
  }
  return seen != 0 && bits * block.changed_count / seen + block.changed_count >= block.next.size() * 8;
}

bool steps_are_hopeless(const ScannedBlock& block) noexcept {
  if (block.changed_count < block.elements() / 4) return false;
  switch (block.width) {
    case 1:
      return steps_are_wide<std::uint8_t>(block);
    case 2:
      return steps_are_wide<std::uint16_t>(block);
    case 4:
      return steps_are_wide<std::uint32_t>(block);
    default:
      return steps_are_wide<std::uint64_t>(block);
  }
}

}  // namespace

void BlockEncoder::begin(std::span<const BlockInput> blocks) {
  class_.clear();
  groups_.clear();
  deferred_ = 0;
  std::size_t elements = 0;
  for (const BlockInput& block : blocks) {
    if (!block.base.empty()) elements += block.next.size() / block_width(block.dtype, block.next.size());
  }
  for (const BlockInput& block : blocks) {
    if (block.base.empty()) continue;
    const unsigned width = block_width(block.dtype, block.next.size());
    const auto like = [&](const Group& group) { return group.dtype == block.dtype && group.width == width; };
    auto group = std::ranges::find_if(groups_, like);
    if (group == groups_.end()) group = groups_.insert(groups_.end(), Group{block.dtype, width, {}, {}});
    const std::size_t share = block.next.size() / width * class_samples / std::max(elements, class_samples);
    group->sample.add(width, block.base, block.next, share);
  }
  for (Group& group : groups_) {
    if (group.sample.changes() != 0) group.model = class_.add_model(group.sample);
  }
}

std::optional<std::size_t> BlockEncoder::model_of(DType dtype, unsigned width) const noexcept {
  for (const Group& group : groups_) {
    if (group.dtype == dtype && group.width == width) return group.model;
  }
  return std::nullopt;
}

std::optional<Encoding> BlockEncoder::encode_change(const ScannedBlock& block, std::vector<std::byte>& out) {
  if (block.changed_count >= class_changes_min && !steps_are_hopeless(block)) {
    if (model_of(block.dtype, block.width)) {
      const std::size_t number = class_.collect(block);
      assert(number == deferred_);
      static_cast<void>(number);
      ++deferred_;
      return std::nullopt;
    }
  }
  return encode_sparse_or_dense(block, out);
}

Encoding BlockEncoder::encode_sparse_or_dense(const ScannedBlock& block, std::vector<std::byte>& out) {
  const std::size_t raw_bytes = block.next.size();
  const std::size_t sparse_bytes = steps_are_hopeless(block) ? raw_bytes : sparse_.measure(block);
  if (sparse_bytes >= raw_bytes || sparse_bytes * 100 > raw_bytes * clear_percent) {
    if (const auto bytes = encode_bytes(block.dtype, block.base, block.next, sparse_bytes, out)) return *bytes;
  }
  if (sparse_bytes < raw_bytes) {
    sparse_.write(block, out);
    return Encoding::sparse;
  }
  encode_raw(block.next, out);
  return Encoding::raw;
}

std::optional<Encoding> BlockEncoder::encode_bytes(DType dtype, Bytes base, Bytes next, std::size_t bytes_to_beat,
                                                   std::vector<std::byte>& out) {
  const std::size_t before = out.size();
  std::size_t bytes_max = std::min(bytes_to_beat, next.size() * lz4_pays_percent / 100);
  std::optional<Encoding> chosen;
  // Encodes into trial_, and takes what is smaller than the best so far.
  const auto take_trial = [&](Encoding encoding) {
    if (chosen && trial_.size() >= bytes_max) return;
    out.resize(before);
    ByteWriter(out).bytes(trial_);
    bytes_max = trial_.size();
    chosen = encoding;
  };
  trial_.clear();
  if (!base.empty() && encode_xor_lz4(base, next, bytes_max, mask_, trial_)) take_trial(Encoding::xor_lz4);
  trial_.clear();
  if (encode_lz4(next, bytes_max, trial_)) take_trial(Encoding::lz4);
  // What repeats that much has no use for order 0.
  if (chosen && bytes_max * 100 < next.size() * clear_percent) return chosen;
  trial_.clear();
  const unsigned width = block_width(dtype, next.size());
  if (planes_.encode(next, width, bytes_max, trial_)) take_trial(Encoding::dense_planes);
  return chosen;
}

ScannedBlock BlockEncoder::scan(const BlockInput& input) {
  ScannedBlock block{input.dtype, block_width(input.dtype, input.next.size()), input.base, input.next, {}, 0, {}};
  changed_.resize(kernels::mask_words(block.elements()));
  if (const auto model = model_of(block.dtype, block.width)) {
    class_.scan(*model, block, changed_.data());
  } else {
    block.changed_count = kernels::scan_changes(input.base, input.next, block.width, changed_.data());
    block.changed = changed_;
    if (block.changed_count != 0) block.target = digest_of(block.next);
  }
  return block;
}

bool BlockEncoder::sparse_is_smaller(std::span<const Deferred> blocks, std::size_t class_bytes) {
  std::size_t sparse_bytes = 0;
  for (const Deferred& block : blocks) {
    sparse_bytes += sparse_.measure(scan(*block.input));
    if (sparse_bytes > class_bytes) return false;
  }
  return true;
}

void BlockEncoder::finish_class(std::span<Deferred> blocks, std::vector<std::byte>& out) {
  assert(blocks.size() == deferred_);
  if (blocks.empty()) return;
  class_.close();
  const std::size_t before = out.size();
  std::size_t all_raw_bytes = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Deferred& block = blocks[i];
    block.encoding = Encoding::class_rans;
    block.begin = out.size();
    class_.write(i, out);
    const std::size_t class_bytes = out.size() - block.begin, raw_bytes = block.input->next.size();
    all_raw_bytes += raw_bytes;
    if (class_bytes * 100 > raw_bytes * clear_percent) {
      trial_whole_.clear();
      const std::size_t to_beat = std::min(class_bytes, raw_bytes);
      const auto better = encode_bytes(block.input->dtype, block.input->base, block.input->next, to_beat, trial_whole_);
      if (!better && class_bytes >= raw_bytes) encode_raw(block.input->next, trial_whole_);
      if (better || class_bytes >= raw_bytes) {
        block.encoding = better.value_or(Encoding::raw);
        out.resize(block.begin);
        ByteWriter(out).bytes(trial_whole_);
      }
    }
    block.end = out.size();
  }
  const std::size_t class_bytes = out.size() - before + class_.tables().size();
  const bool clear = class_bytes >= class_clear_bytes && class_bytes * 100 <= all_raw_bytes * clear_percent;
  if (clear || (class_bytes < all_raw_bytes && !sparse_is_smaller(blocks, class_bytes))) return;
  out.resize(before);
  for (Deferred& block : blocks) {
    block.begin = out.size();
    block.encoding = encode_sparse_or_dense(scan(*block.input), out);
    block.end = out.size();
  }
}

Encoding BlockEncoder::encode_whole(DType dtype, Bytes next, std::vector<std::byte>& out) {
  if (const auto bytes = encode_bytes(dtype, {}, next, next.size(), out)) return *bytes;
  encode_raw(next, out);
  return Encoding::raw;
}

}  // namespace deltarelay::codec
