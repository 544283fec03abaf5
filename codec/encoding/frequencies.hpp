// How often each token of one context occurs, scaled to rans_one: what a coder and a decoder must agree on.
//
// Sent explicitly and not as a distribution's parameter: some 20 bytes per context, shared by the blocks of a frame,
// follow whatever the training does. Nothing read from a peer is used before read() has found that it adds up.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/encoding/bit_io.hpp"
#include "codec/errc.hpp"
#include "codec/kernels/rans.hpp"

namespace deltarelay::codec {

inline constexpr unsigned tokens_max = 256;

struct Frequencies {
  std::array<std::uint16_t, tokens_max> of{};
  unsigned count = 0;  ///< one more than the highest token that occurs; 0: nothing does

  /// The best fit to these counts; every token that occurs gets at least 1.
  void fit(std::span<const std::uint32_t> counts) noexcept;
  /// What `counts`, coded with this table, will take, in bits. A token with a count and no frequency costs infinity.
  [[nodiscard]] double cost_bits(std::span<const std::uint32_t> counts) const noexcept;

  /// FORMAT.md, "Frequencies". Room for frequencies_bytes_max at the writer.
  void write(BitWriter& writer) const noexcept;
  [[nodiscard]] bool read(BitReader& reader, unsigned count_max) noexcept;

  /// Fills rans_one slots. REQUIRES count > 0.
  void fill_slots(std::span<std::uint32_t> slots) const noexcept;
  /// Fills the first `count` entries.
  void fill_ranges(std::span<std::uint32_t> ranges) const noexcept;
};
/// 9 bits of count, at most 15 bits a token.
inline constexpr std::size_t frequencies_bytes_max = (9 + 15 * tokens_max) / 8 + 1;

/// An encoder's states as they stand before the first symbol.
[[nodiscard]] inline kernels::RansEncoding begin_rans(unsigned lanes, std::byte* words_end) noexcept {
  kernels::RansEncoding out;
  out.states.fill(kernels::rans_state_min);
  out.lanes = lanes;
  out.words = words_end;
  return out;
}
/// Reads the states and so many words: a decoder as it stands before the first symbol. Failures are the reader's.
void read_rans(ByteReader& reader, unsigned lanes, std::uint64_t words, kernels::RansDecoding& out) noexcept;
/// Whether a decoder has come to where the encoder began, with every word used.
[[nodiscard]] Result<void> finish_rans(const kernels::RansDecoding& from) noexcept;

/// How many lanes a block of so many symbols gets: a lane costs two bytes, and the vector kernels want 16 or 32.
[[nodiscard]] unsigned lanes_for(std::size_t symbols) noexcept;

}  // namespace deltarelay::codec
