// Bits in and out of bytes, least significant first: the bottom of the sparse encoding.
//
// The reader never touches a byte past its input: near the end it sees zeros instead, and the caller compares how far
// it went with how far it may go, once, at the end (finish()). The writer's room is checked by its caller through
// full().
#pragma once

#include <algorithm>
#include <cstdint>

#include "codec/bytes.hpp"
#include "codec/errc.hpp"

namespace deltarelay::codec {

class BitReader {
 public:
  explicit BitReader(Bytes in) noexcept : in_(in) {}

  /// At least the next 57 bits, the first of them lowest.
  [[nodiscard]] std::uint64_t peek() const noexcept {
    const std::size_t at = static_cast<std::size_t>(bits_ >> 3);
    std::uint64_t value = 0;
    if (at + 8 <= in_.size()) [[likely]] {
      value = load_le<std::uint64_t>(in_.data() + at);
    } else {
      for (std::size_t i = at; i < in_.size(); ++i) value |= std::to_integer<std::uint64_t>(in_[i]) << (8 * (i - at));
    }
    return value >> (bits_ & 7);
  }
  void skip(unsigned count) noexcept { bits_ += count; }
  /// Bits taken so far, also such as were not there.
  [[nodiscard]] std::uint64_t position() const noexcept { return bits_; }
  /// REQUIRES count <= 64.
  [[nodiscard]] std::uint64_t get(unsigned count) noexcept {
    if (count > 32) {
      const std::uint64_t low = get(32);
      return low | get(count - 32) << 32;
    }
    const std::uint64_t value = peek() & ((std::uint64_t{1} << count) - 1);
    skip(count);
    return value;
  }

  /// Every bit was there, less than a byte is left, and what is left is zero.
  [[nodiscard]] Result<void> finish() const noexcept {
    const std::uint64_t all = std::uint64_t{in_.size()} * 8;
    if (bits_ > all) return errc::truncated;
    if (all - bits_ >= 8) return errc::trailing_bytes;
    if (peek() != 0) return errc::malformed_payload;
    return {};
  }

 private:
  Bytes in_;
  std::uint64_t bits_ = 0;
};

class BitWriter {
 public:
  /// One put() may write this much past the bytes that are complete.
  static constexpr std::size_t slack_bytes = 8;
  static constexpr unsigned put_bits_max = 56;

  explicit BitWriter(MutableBytes out) noexcept : out_(out) {}

  /// No room for another put(): the caller gives up.
  [[nodiscard]] bool full() const noexcept { return at_ + slack_bytes > out_.size(); }
  /// REQUIRES count <= 56, no bits of `value` above them, and not full().
  void put(std::uint64_t value, unsigned count) noexcept {
    pending_ |= value << pending_bits_;
    pending_bits_ += count;
    store_le(out_.data() + at_, pending_);
    const unsigned whole = pending_bits_ >> 3;
    at_ += whole;
    pending_ = whole == 8 ? 0 : pending_ >> (8 * whole);
    pending_bits_ &= 7;
  }
  /// Pads the last byte with zeros; returns the bytes written. REQUIRES not full().
  [[nodiscard]] std::size_t finish() noexcept { return at_ + (pending_bits_ != 0 ? 1 : 0); }

 private:
  MutableBytes out_;
  std::size_t at_ = 0;
  std::uint64_t pending_ = 0;
  unsigned pending_bits_ = 0;
};

}  // namespace deltarelay::codec
