// A bounded little-endian reader and a writer: the only way in which payloads turn into fields and back.
//
// Why a sticky failure: a decoder reads all its fields in one straight line and asks once, at the end, whether they
// were all there. After a failure every read gives zeros and empty spans, so no loop runs on garbage: counts are
// checked with count(), which also bounds what a caller may allocate by what the payload can really hold. No allocation
// in the reader; spans it returns point into the input.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "codec/digest.hpp"
#include "codec/errc.hpp"
#include "codec/types.hpp"

namespace deltarelay::codec {

/// The value with its bytes in little-endian order in memory, or back.
template <class T>
[[nodiscard]] constexpr T little_endian(T value) noexcept {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
    return value;
  } else {
    T out = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) out = static_cast<T>((out << 8) | ((value >> (8 * i)) & 0xff));
    return out;
  }
}
/// REQUIRES room for sizeof(T) bytes at `out`; any alignment.
template <class T>
inline void store_le(std::byte* out, T value) noexcept {
  value = little_endian(value);
  std::memcpy(out, &value, sizeof value);
}
/// REQUIRES sizeof(T) readable bytes at `in`; any alignment.
template <class T>
[[nodiscard]] inline T load_le(const std::byte* in) noexcept {
  T value;
  std::memcpy(&value, in, sizeof value);
  return little_endian(value);
}

class ByteReader {
 public:
  explicit ByteReader(Bytes in) noexcept : rest_(in) {}

  [[nodiscard]] std::uint8_t u8() noexcept { return integer<std::uint8_t>(); }
  [[nodiscard]] std::uint16_t u16() noexcept { return integer<std::uint16_t>(); }
  [[nodiscard]] std::uint32_t u32() noexcept { return integer<std::uint32_t>(); }
  [[nodiscard]] std::uint64_t u64() noexcept { return integer<std::uint64_t>(); }

  /// LEB128, at most 10 bytes, only the shortest form (so that equal values have equal bytes).
  [[nodiscard]] std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      if (!ok()) return 0;
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) {
        if (byte == 0 && shift != 0) break;
        return value;
      }
    }
    fail(errc::malformed_payload);
    return 0;
  }

  [[nodiscard]] Bytes bytes(std::uint64_t count) noexcept {
    if (count > rest_.size()) {
      fail(errc::truncated);
      return {};
    }
    const Bytes out = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return out;
  }
  template <std::size_t N>
  [[nodiscard]] std::array<std::byte, N> fixed() noexcept {
    std::array<std::byte, N> out{};
    const Bytes in = bytes(N);
    if (in.size() == N) std::memcpy(out.data(), in.data(), N);
    return out;
  }
  [[nodiscard]] Digest digest() noexcept { return Digest{fixed<16>()}; }

  /// A u32 length, then that many bytes, at most `max`.
  [[nodiscard]] Bytes sized_bytes(std::size_t max) noexcept {
    const std::uint32_t length = u32();
    if (length > max) fail(errc::malformed_payload);
    return ok() ? bytes(length) : Bytes{};
  }
  [[nodiscard]] std::string sized_string(std::size_t max) {
    const Bytes in = sized_bytes(max);
    return {reinterpret_cast<const char*>(in.data()), in.size()};
  }

  /// A u32 count of things that take at least `bytes_each_min` bytes each: more than the rest can hold is refused here,
  /// before anybody reserves memory for them.
  [[nodiscard]] std::size_t count(std::size_t bytes_each_min, std::size_t max) noexcept {
    const std::uint32_t value = u32();
    if (value > max) fail(errc::table_too_large);
    if (ok() && value > rest_.size() / bytes_each_min) fail(errc::truncated);
    return ok() ? value : 0;
  }

  [[nodiscard]] std::size_t remaining() const noexcept { return rest_.size(); }
  [[nodiscard]] bool ok() const noexcept { return failure_ == errc::ok; }
  /// The first failure stays; reads give zeros from here on.
  void fail(errc why) noexcept {
    if (ok()) failure_ = why;
    rest_ = {};
  }
  void require(bool condition, errc why = errc::malformed_payload) noexcept {
    if (!condition) fail(why);
  }
  /// The first failure, or trailing_bytes when something is left over.
  [[nodiscard]] Result<void> finish() const noexcept {
    if (!ok()) return failure_;
    if (!rest_.empty()) return errc::trailing_bytes;
    return {};
  }

 private:
  template <class T>
  [[nodiscard]] T integer() noexcept {
    const Bytes in = bytes(sizeof(T));
    return in.size() == sizeof(T) ? load_le<T>(in.data()) : T{0};
  }

  Bytes rest_;
  errc failure_ = errc::ok;
};

/// Appends to a vector that it does not own.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) noexcept : out_(out) {}

  void u8(std::uint8_t value) { integer(value); }
  void u16(std::uint16_t value) { integer(value); }
  void u32(std::uint32_t value) { integer(value); }
  void u64(std::uint64_t value) { integer(value); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) u8(static_cast<std::uint8_t>(value | 0x80));
    u8(static_cast<std::uint8_t>(value));
  }
  void bytes(Bytes in) {
    if (!in.empty()) std::memcpy(grow(in.size()), in.data(), in.size());
  }
  void digest(const Digest& value) { bytes(value.bytes); }
  void sized_bytes(Bytes in) {
    u32(static_cast<std::uint32_t>(in.size()));
    bytes(in);
  }
  void sized_string(std::string_view in) { sized_bytes(std::as_bytes(std::span(in))); }

 private:
  template <class T>
  void integer(T value) {
    store_le(grow(sizeof(T)), value);
  }
  // Not vector::insert: g++ 12 warns of overflows that cannot happen when it inlines that for small arrays.
  std::byte* grow(std::size_t count) {
    const std::size_t at = out_.size();
    out_.resize(at + count);
    return out_.data() + at;
  }
  std::vector<std::byte>& out_;
};

}  // namespace deltarelay::codec
