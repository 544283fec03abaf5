#include "codec/encoding/sparse.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "codec/bytes.hpp"
#include "codec/encoding/bit_io.hpp"
#include "codec/limits.hpp"

namespace deltarelay::codec {
namespace {

// FORMAT.md, "sparse". A gap's quotient is that many zeros and a one; from 24 zeros on the whole gap follows in 22
// bits, so that one code never passes 47 bits and one look at the stream is enough for it.
constexpr unsigned quotient_escape = 24;
constexpr unsigned escaped_gap_bits = 22;
constexpr unsigned rice_bits_max = 21;
static_assert((std::size_t{1} << escaped_gap_bits) >= block_bytes_max);

unsigned gap_code_bits(std::uint32_t gap, unsigned rice_bits) noexcept {
  const std::uint32_t quotient = gap >> rice_bits;
  return quotient < quotient_escape ? quotient + 1 + rice_bits : quotient_escape + 1 + escaped_gap_bits;
}

void put_gap(BitWriter& writer, std::uint32_t gap, unsigned rice_bits) noexcept {
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
  const std::byte* base = block.base.data();
  const std::byte* next = block.next.data();
  Change* out = changes_.data();
  std::size_t expected = 0;
  for_each_change(block.changed, [&](std::size_t position) {
    const StepToken step = step_token(load_le<Element>(base + position * sizeof(Element)),
                                      load_le<Element>(next + position * sizeof(Element)));
    *out++ = {static_cast<std::uint32_t>(position - expected), step.token};
    expected = position + 1;
    ++counts_[step.token];
    if (step.raw_bits != 0) raws_.push_back(step.raw);
  });
  assert(out == changes_.data() + changes_.size());
}

// The best parameter is near log2(mean * ln 2); the exact cost of that and its neighbours decides.
void SparseEncoder::choose_rice_bits() {
  std::uint64_t sum = 0;
  for (const Change& change : changes_) sum += change.gap;
  const std::uint64_t mean = sum / changes_.size();
  const auto guess = static_cast<unsigned>(std::bit_width(mean * 177 / 256 + 1) - 1);
  std::uint64_t best_bits = ~std::uint64_t{0};
  for (unsigned rice_bits = guess == 0 ? 0 : guess - 1; rice_bits <= std::min(guess + 1, rice_bits_max); ++rice_bits) {
    std::uint64_t bits = 0;
    for (const Change& change : changes_) bits += gap_code_bits(change.gap, rice_bits);
    if (bits >= best_bits) continue;
    best_bits = bits;
    rice_bits_ = rice_bits;
  }
  gap_bytes_ = static_cast<std::size_t>((best_bits + 7) / 8);
}

std::size_t SparseEncoder::measure(const ScannedBlock& block) {
  assert(block.changed_count > 0);
  changes_.resize(block.changed_count);
  raws_.clear();
  counts_.assign(step_token_count(block.width), 0);
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
  return head_bytes(changes_.size(), code_.token_count(), gap_bytes_) + gap_bytes_ + step_bytes_;
}

void SparseEncoder::write(const ScannedBlock& block, std::vector<std::byte>& out) {
  assert(changes_.size() == block.changed_count);
  ByteWriter head(out);
  head.varint(changes_.size());
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
  BitWriter gaps(MutableBytes(out).subspan(gaps_at));
  for (const Change& change : changes_) put_gap(gaps, change.gap, rice_bits_);
  BitWriter steps(MutableBytes(out).subspan(steps_at));
  const std::uint64_t* raw = raws_.data();
  for (const Change& change : changes_) {
    const PrefixCode::Code code = code_.code(change.token);
    steps.put(code.bits, code.length);
    if (const unsigned raw_bits = step_raw_bits(change.token); raw_bits != 0) put_raw(steps, *raw++, raw_bits);
  }
  const bool exact = gaps.finish() == gap_bytes_ && steps.finish() == step_bytes_;
  assert(exact);
  static_cast<void>(exact);
  out.resize(end);
}

namespace {

struct SparseStreams {
  std::uint64_t count;
  unsigned rice_bits;
  BitReader gaps, steps;
};

template <class Element>
Result<void> apply_changes(SparseStreams streams, const PrefixCode& code, MutableBytes out) noexcept {
  std::byte* const elements = out.data();
  const std::uint64_t end = out.size() / sizeof(Element);
  const std::uint64_t low_mask = (std::uint64_t{1} << streams.rice_bits) - 1;
  constexpr std::uint64_t escape_mask = (std::uint64_t{1} << escaped_gap_bits) - 1;
  std::uint64_t position = 0;
  for (std::uint64_t i = 0; i < streams.count; ++i, ++position) {
    const std::uint64_t bits = streams.gaps.peek();
    const auto quotient = static_cast<unsigned>(std::countr_zero(bits));
    if (quotient < quotient_escape) [[likely]] {
      position += (std::uint64_t{quotient} << streams.rice_bits) + ((bits >> (quotient + 1)) & low_mask);
      streams.gaps.skip(quotient + 1 + streams.rice_bits);
    } else {
      if (quotient != quotient_escape) return errc::malformed_payload;
      position += (bits >> (quotient + 1)) & escape_mask;
      streams.gaps.skip(quotient + 1 + escaped_gap_bits);
    }
    if (position >= end) return errc::malformed_payload;

    const PrefixCode::Decoded decoded = code.decode(streams.steps.peek());
    streams.steps.skip(decoded.length);
    const unsigned raw_bits = step_raw_bits(decoded.token);
    const std::uint64_t raw = raw_bits != 0 ? streams.steps.get(raw_bits) : 0;
    std::byte* const at = elements + position * sizeof(Element);
    store_le(at, static_cast<Element>(load_le<Element>(at) + static_cast<Element>(step_of(decoded.token, raw))));
  }
  if (auto gaps = streams.gaps.finish(); !gaps) return gaps;
  return streams.steps.finish();
}

bool read_code(ByteReader& head, unsigned width, PrefixCode& code) noexcept {
  const unsigned count = head.u8();
  head.require(count >= 1 && count <= step_token_count(width));
  std::array<std::uint8_t, PrefixCode::token_count_max + 1> lengths{};
  for (unsigned token = 0; head.ok() && token < count; token += 2) {
    const std::uint8_t pair = head.u8();
    lengths[token] = pair & 15;
    lengths[token + 1] = pair >> 4;
  }
  // An odd count leaves half a byte, which must be zero: one code has one form.
  head.require(!head.ok() || count % 2 == 0 || lengths[count] == 0);
  return head.ok() && code.assign(std::span(lengths).first(count));
}

}  // namespace

Result<void> decode_sparse(Bytes data, unsigned width, Bytes base, MutableBytes out, PrefixCode& code) {
  ByteReader head(data);
  const std::uint64_t count = head.varint();
  const unsigned rice_bits = head.u8();
  head.require(count >= 1 && count <= out.size() / width && rice_bits <= rice_bits_max);
  const bool has_code = read_code(head, width, code);
  const Bytes gaps = head.bytes(head.varint());
  const Bytes steps = head.bytes(head.remaining());
  if (auto read = head.finish(); !read) return read;
  if (!has_code) return errc::malformed_payload;
  code.prepare_decoding();

  std::memcpy(out.data(), base.data(), out.size());
  const SparseStreams streams{count, rice_bits, BitReader(gaps), BitReader(steps)};
  switch (width) {
    case 1:
      return apply_changes<std::uint8_t>(streams, code, out);
    case 2:
      return apply_changes<std::uint16_t>(streams, code, out);
    case 4:
      return apply_changes<std::uint32_t>(streams, code, out);
    default:
      return apply_changes<std::uint64_t>(streams, code, out);
  }
}

}  // namespace deltarelay::codec
