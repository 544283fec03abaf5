#include "codec/encoding/choose.hpp"

#include <algorithm>

#include "codec/bytes.hpp"
#include "codec/encoding/lz4.hpp"
#include "codec/encoding/raw.hpp"
#include "codec/encoding/xor_lz4.hpp"

namespace deltarelay::codec {
namespace {

// Below this share of the raw size sparse is taken without a look at the byte codes, which for scattered changes never
// reach it (codec measurements: xor + lz4 costs four to five times the sparse code).
constexpr std::size_t sparse_clear_percent = 50;
// LZ4 has to earn its decoding time.
constexpr std::size_t lz4_pays_percent = 95;

constexpr unsigned samples = 256;

// With more than a quarter changed, collecting every step only to find that none is small would cost as much as all the
// rest: look at some elements first. True when steps take so many bits that sparse cannot win.
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

bool sparse_is_hopeless(const ScannedBlock& block) noexcept {
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

Encoding BlockEncoder::encode_change(const ScannedBlock& block, std::vector<std::byte>& out) {
  const std::size_t raw_bytes = block.next.size();
  const std::size_t sparse_bytes = sparse_is_hopeless(block) ? raw_bytes : sparse_.measure(block);
  if (sparse_bytes < raw_bytes && sparse_bytes * 100 <= raw_bytes * sparse_clear_percent) {
    sparse_.write(block, out);
    return Encoding::sparse;
  }
  return encode_dense_change(block, sparse_bytes, out);
}

Encoding BlockEncoder::encode_dense_change(const ScannedBlock& block, std::size_t sparse_bytes,
                                           std::vector<std::byte>& out) {
  const std::size_t raw_bytes = block.next.size();
  const std::size_t before = out.size();
  std::size_t bytes_max = std::min(sparse_bytes, raw_bytes * lz4_pays_percent / 100);
  Encoding chosen = sparse_bytes < raw_bytes ? Encoding::sparse : Encoding::raw;
  if (encode_xor_lz4(block.base, block.next, bytes_max, mask_, out)) {
    bytes_max = out.size() - before;
    chosen = Encoding::xor_lz4;
  }
  trial_.clear();
  if (encode_lz4(block.next, bytes_max, trial_) && (chosen != Encoding::xor_lz4 || trial_.size() < bytes_max)) {
    out.resize(before);
    ByteWriter(out).bytes(trial_);
    return Encoding::lz4;
  }
  if (chosen == Encoding::sparse) sparse_.write(block, out);
  if (chosen == Encoding::raw) encode_raw(block.next, out);
  return chosen;
}

Encoding BlockEncoder::encode_whole(Bytes next, std::vector<std::byte>& out) {
  if (encode_lz4(next, next.size() * lz4_pays_percent / 100, out)) return Encoding::lz4;
  encode_raw(next, out);
  return Encoding::raw;
}

}  // namespace deltarelay::codec
