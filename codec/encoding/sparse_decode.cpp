// The decoding half of sparse. Reads a peer's bytes: every count is checked against the block, every position before it
// is used, and the bit readers see zeros past their ends.
#include <algorithm>
#include <cstring>

#include "codec/bytes.hpp"
#include "codec/encoding/bit_io.hpp"
#include "codec/encoding/sparse.hpp"
#include "codec/encoding/sparse_format.hpp"
#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec {
namespace {

using namespace sparse_format;

struct SparseStreams {
  std::uint64_t count;
  unsigned rice_bits;
  BitReader gaps, steps;
};

// The base is copied just ahead of the changes, so that these find their lines in the first-level cache.
class CopyAhead {
 public:
  CopyAhead(Bytes base, MutableBytes out) noexcept : base_(base), out_(out) {}
  void beyond(std::size_t offset) noexcept {
    while (copied_ <= offset) copy(std::min(tile_bytes, base_.size() - copied_));
  }
  void rest() noexcept { copy(base_.size() - copied_); }

 private:
  static constexpr std::size_t tile_bytes = 4096;
  void copy(std::size_t count) noexcept {
    std::memcpy(out_.data() + copied_, base_.data() + copied_, count);
    copied_ += count;
  }
  Bytes base_;
  MutableBytes out_;
  std::size_t copied_ = 0;
};

template <class Element>
DELTARELAY_HOT inline errc apply_changes(SparseStreams& streams, const PrefixCode& code, Bytes base,
                                         MutableBytes out) noexcept {
  CopyAhead copy(base, out);
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
    std::uint64_t step = step_of(decoded.token, 0);
    if (decoded.token >= small_step_tokens) {
      step = step_of(decoded.token, streams.steps.get(step_raw_bits(decoded.token)));
    }
    const std::size_t offset = position * sizeof(Element);
    copy.beyond(offset);
    store_le(elements + offset, static_cast<Element>(load_le<Element>(elements + offset) + static_cast<Element>(step)));
  }
  copy.rest();
  return errc::ok;
}

template <class Element>
Result<void> decode_elements(SparseStreams streams, const PrefixCode& code, Bytes base, MutableBytes out) noexcept {
  const errc applied =
      kernels::on_this_cpu([&]() DELTARELAY_HOT { return apply_changes<Element>(streams, code, base, out); });
  if (applied != errc::ok) return applied;
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

  const SparseStreams streams{count, rice_bits, BitReader(gaps), BitReader(steps)};
  switch (width) {
    case 1:
      return decode_elements<std::uint8_t>(streams, code, base, out);
    case 2:
      return decode_elements<std::uint16_t>(streams, code, base, out);
    case 4:
      return decode_elements<std::uint32_t>(streams, code, base, out);
    default:
      return decode_elements<std::uint64_t>(streams, code, base, out);
  }
}

}  // namespace deltarelay::codec
