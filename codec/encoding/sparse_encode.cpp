// The encoding half of sparse: positions out of the mask, gaps and step tokens out of positions, bits out of those.
#include <algorithm>
#include <cassert>

#include "codec/bytes.hpp"
#include "codec/encoding/bit_io.hpp"
#include "codec/encoding/sparse.hpp"
#include "codec/encoding/sparse_format.hpp"
#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec {
namespace {

using namespace sparse_format;
using kernels::on_this_cpu;
using TokenCounts = std::array<std::uint32_t, PrefixCode::token_count_max>;

DELTARELAY_HOT inline std::uint32_t gap_code_bits(std::uint32_t gap, unsigned rice_bits) noexcept {
  const std::uint32_t quotient = gap >> rice_bits;
  constexpr std::uint32_t escaped = quotient_escape + 1 + escaped_gap_bits;
  return quotient < quotient_escape ? quotient + 1 + rice_bits : escaped;
}

DELTARELAY_HOT inline std::uint64_t all_gap_bits(std::span<const std::uint32_t> gaps, unsigned rice_bits) noexcept {
  // Sums of parts in 32 bits, which a vector adds eight at a time: 4096 codes of 47 bits fit.
  constexpr std::size_t part = 4096;
  std::uint64_t bits = 0;
  for (std::size_t at = 0; at < gaps.size(); at += part) {
    std::uint32_t sum = 0;
    for (const std::uint32_t gap : gaps.subspan(at, std::min(part, gaps.size() - at))) {
      sum += gap_code_bits(gap, rice_bits);
    }
    bits += sum;
  }
  return bits;
}

DELTARELAY_HOT inline void put_gap(BitWriter& writer, std::uint32_t gap, unsigned rice_bits) noexcept {
  const std::uint32_t quotient = gap >> rice_bits;
  if (quotient < quotient_escape) {
    const std::uint64_t low = gap & ((std::uint64_t{1} << rice_bits) - 1);
    writer.put((low << 1 | 1) << quotient, quotient + 1 + rice_bits);
  } else {
    writer.put((std::uint64_t{gap} << 1 | 1) << quotient_escape, quotient_escape + 1 + escaped_gap_bits);
  }
}

void put_raw(BitWriter& writer, std::uint64_t raw, unsigned count) noexcept {
  if (count > 32) {
    writer.put(raw & 0xffffffff, 32);
    raw >>= 32;
    count -= 32;
  }
  writer.put(raw, count);
}

// How far the prefetch looks ahead; positions_of() leaves that much room behind the last position.
constexpr std::size_t prefetch_changes = position_slack;

// Turns positions into gaps in place, and finds the steps' tokens and raw bits.
template <class Element>
DELTARELAY_HOT inline void tokenise(const ScannedBlock& block, std::span<std::uint32_t> gaps, std::uint8_t* tokens,
                                    std::uint64_t* raws, std::span<std::uint32_t> counts) noexcept {
  const std::byte* base = block.base.data();
  const std::byte* next = block.next.data();
  // Two histograms in turn: most steps are one of two tokens, and counting one twice in a row waits for itself.
  std::array<TokenCounts, 2> halves{};
  std::uint32_t expected = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    // The scan has pushed most of the two blocks out of the nearer caches; where we shall look is known well ahead.
    const std::size_t ahead = std::size_t{gaps.data()[i + prefetch_changes]} * sizeof(Element);
    __builtin_prefetch(base + ahead);
    __builtin_prefetch(next + ahead);
    const std::uint32_t position = gaps[i];
    const std::size_t at = std::size_t{position} * sizeof(Element);
    const StepToken step = step_token(load_le<Element>(base + at), load_le<Element>(next + at));
    gaps[i] = position - expected;
    expected = position + 1;
    tokens[i] = step.token;
    ++halves[i % 2][step.token];
    *raws = step.raw;
    raws += step.raw_bits != 0 ? 1 : 0;
  }
  for (std::size_t token = 0; token < counts.size(); ++token) counts[token] = halves[0][token] + halves[1][token];
}

DELTARELAY_HOT inline std::size_t put_gaps(MutableBytes out, std::span<const std::uint32_t> gaps,
                                           unsigned rice_bits) noexcept {
  BitWriter writer(out);
  for (const std::uint32_t gap : gaps) put_gap(writer, gap, rice_bits);
  return writer.finish();
}

DELTARELAY_HOT inline std::size_t put_steps(MutableBytes out, std::span<const std::uint8_t> tokens,
                                            const std::uint64_t* raws, const PrefixCode& code) noexcept {
  BitWriter writer(out);
  for (const std::uint8_t token : tokens) {
    const PrefixCode::Code bits = code.code(token);
    writer.put(bits.bits, bits.length);
    if (token >= small_step_tokens) put_raw(writer, *raws++, step_raw_bits(token));
  }
  return writer.finish();
}

// Changed count, rice bits, code lengths, length of the gap stream.
std::size_t head_bytes(std::size_t changes, unsigned tokens, std::size_t gap_bytes) noexcept {
  const auto varint_bytes = [](std::size_t value) {
    std::size_t bytes = 1;
    for (; value >= 0x80; value >>= 7) ++bytes;
    return bytes;
  };
  return varint_bytes(changes) + 2 + (tokens + 1) / 2 + varint_bytes(gap_bytes);
}

}  // namespace

template <class Element>
void SparseEncoder::collect(const ScannedBlock& block) {
  const std::size_t found = on_this_cpu([&]() DELTARELAY_HOT {
    const std::size_t count = positions_of(block.changed, gaps_.data());
    tokenise<Element>(block, std::span(gaps_.data(), count), tokens_.data(), raws_.data(), counts_);
    return count;
  });
  assert(found == count_);
  static_cast<void>(found);
}

// The best parameter is near log2(mean * ln 2); the exact cost of that and its neighbours decides.
void SparseEncoder::choose_rice_bits() {
  const std::span<const std::uint32_t> gaps(gaps_.data(), count_);
  std::uint64_t sum = 0;
  for (const std::uint32_t gap : gaps) sum += gap;
  const std::uint64_t mean = sum / count_;
  const auto guess = static_cast<unsigned>(std::bit_width(mean * 177 / 256 + 1) - 1);
  std::uint64_t best_bits = ~std::uint64_t{0};
  for (unsigned rice_bits = guess == 0 ? 0 : guess - 1; rice_bits <= std::min(guess + 1, rice_bits_max); ++rice_bits) {
    const std::uint64_t bits = on_this_cpu([&]() DELTARELAY_HOT { return all_gap_bits(gaps, rice_bits); });
    if (bits >= best_bits) continue;
    best_bits = bits;
    rice_bits_ = rice_bits;
  }
  gap_bytes_ = static_cast<std::size_t>((best_bits + 7) / 8);
}

std::size_t SparseEncoder::measure(const ScannedBlock& block) {
  assert(block.changed_count > 0);
  count_ = block.changed_count;
  if (tokens_.size() < count_) {
    tokens_.resize(count_);
    gaps_.resize(count_ + position_slack);
    raws_.resize(count_ + 1);
  }
  counts_.resize(step_token_count(block.width));
  switch (block.width) {
    case 1:
      collect<std::uint8_t>(block);
      break;
    case 2:
      collect<std::uint16_t>(block);
      break;
    case 4:
      collect<std::uint32_t>(block);
      break;
    default:
      collect<std::uint64_t>(block);
      break;
  }
  choose_rice_bits();
  code_.build(counts_);
  std::uint64_t step_bits = 0;
  for (unsigned token = 0; token < counts_.size(); ++token) {
    step_bits += std::uint64_t{counts_[token]} * (code_.code(token).length + step_raw_bits(token));
  }
  step_bytes_ = static_cast<std::size_t>((step_bits + 7) / 8);
  return head_bytes(count_, code_.token_count(), gap_bytes_) + gap_bytes_ + step_bytes_;
}

void SparseEncoder::write(const ScannedBlock& block, std::vector<std::byte>& out) {
  assert(count_ == block.changed_count);
  static_cast<void>(block);
  ByteWriter head(out);
  head.varint(count_);
  head.u8(static_cast<std::uint8_t>(rice_bits_));
  head.u8(static_cast<std::uint8_t>(code_.token_count()));
  for (unsigned token = 0; token < code_.token_count(); token += 2) {
    const unsigned high = token + 1 < code_.token_count() ? code_.code(token + 1).length : 0;
    head.u8(static_cast<std::uint8_t>(code_.code(token).length | high << 4));
  }
  head.varint(gap_bytes_);

  const std::size_t gaps_at = out.size(), steps_at = gaps_at + gap_bytes_;
  const std::size_t end = steps_at + step_bytes_;
  // The gap stream's last put() writes over the beginning of the step stream, which is written after it.
  out.resize(end + BitWriter::slack_bytes);
  const MutableBytes room(out);
  const bool exact = on_this_cpu([&]() DELTARELAY_HOT {
    const std::size_t gap_bytes = put_gaps(room.subspan(gaps_at), std::span(gaps_.data(), count_), rice_bits_);
    const std::size_t step_bytes =
        put_steps(room.subspan(steps_at), std::span(tokens_.data(), count_), raws_.data(), code_);
    return gap_bytes == gap_bytes_ && step_bytes == step_bytes_;
  });
  assert(exact);
  static_cast<void>(exact);
  out.resize(end);
}

}  // namespace deltarelay::codec
