// A canonical prefix (Huffman) code of at most 138 tokens and 12 bits, built per block and sent as 4-bit lengths.
//
// Why per block: what a step looks like differs by dtype and by training phase, and 16 bytes of lengths are nothing
// against thousands of changes. Codes are assigned in order of (length, token) and stored with their first bit lowest.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/types.hpp"

namespace deltarelay::codec {

class PrefixCode {
 public:
  static constexpr unsigned bits_max = 12;
  static constexpr unsigned token_count_max = 138;

  struct Code {
    std::uint16_t bits = 0;
    std::uint8_t length = 0;  ///< 0: the token does not occur
  };
  struct Decoded {
    std::uint8_t token = 0;
    std::uint8_t length = 0;
  };

  /// The best code for these counts (within bits_max). REQUIRES at least one count that is not zero.
  void build(std::span<const std::uint32_t> counts) noexcept;
  /// Takes lengths from a peer; false unless they make a complete code (or name one token of length 1).
  [[nodiscard]] bool assign(std::span<const std::uint8_t> lengths) noexcept;
  /// Fills the decoding table. REQUIRES build() or an assign() that was true.
  void prepare_decoding() noexcept;

  [[nodiscard]] Code code(unsigned token) const noexcept { return codes_[token]; }
  /// One more than the highest token that has a code.
  [[nodiscard]] unsigned token_count() const noexcept { return token_count_; }
  /// The token at the low end of `bits`. REQUIRES prepare_decoding().
  [[nodiscard]] Decoded decode(std::uint64_t bits) const noexcept { return table_[bits & table_mask_]; }

 private:
  void assign_codes() noexcept;
  std::array<Code, token_count_max> codes_{};
  unsigned token_count_ = 0;
  std::uint64_t table_mask_ = 0;
  std::array<Decoded, 1u << bits_max> table_{};
};

}  // namespace deltarelay::codec
