#include "codec/encoding/frequencies.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace deltarelay::codec {

using kernels::rans_one;

namespace {

constexpr unsigned count_bits = 9;   // FORMAT.md, "Frequencies"
constexpr unsigned length_bits = 4;  // of a frequency's own length, 0 to 12

}  // namespace

void Frequencies::fit(std::span<const std::uint32_t> counts) noexcept {
  assert(counts.size() <= tokens_max);
  of.fill(0);
  count = 0;
  std::uint64_t total = 0;
  for (const std::uint32_t n : counts) total += n;
  if (total == 0) return;
  std::uint32_t sum = 0;
  for (unsigned token = 0; token < counts.size(); ++token) {
    if (counts[token] == 0) continue;
    const std::uint64_t scaled = (std::uint64_t{counts[token]} * rans_one + total / 2) / total;
    of[token] = static_cast<std::uint16_t>(std::max<std::uint64_t>(scaled, 1));
    sum += of[token];
    count = token + 1;
  }
  // What rounding left over goes to the largest, where it weighs least; what it took too much comes from the largest,
  // bit by bit, since many rare tokens may have been rounded up.
  while (sum != rans_one) {
    const auto largest = std::max_element(of.begin(), of.begin() + count);
    if (sum < rans_one) {
      *largest = static_cast<std::uint16_t>(*largest + (rans_one - sum));
      sum = rans_one;
    } else {
      const std::uint32_t less = std::min<std::uint32_t>(sum - rans_one, std::max<std::uint32_t>(*largest / 16u, 1));
      *largest = static_cast<std::uint16_t>(*largest - less);
      sum -= less;
    }
  }
}

double Frequencies::cost_bits(std::span<const std::uint32_t> counts) const noexcept {
  double bits = 0;
  for (unsigned token = 0; token < counts.size(); ++token) {
    if (counts[token] == 0) continue;
    if (of[token] == 0) return std::numeric_limits<double>::infinity();
    bits += counts[token] * (kernels::rans_bits - std::log2(static_cast<double>(of[token])));
  }
  return bits;
}

void Frequencies::write(BitWriter& writer) const noexcept {
  writer.put(count, count_bits);
  for (unsigned token = 0; token < count; ++token) {
    const auto length = static_cast<unsigned>(std::bit_width(of[token]));
    writer.put(length, length_bits);
    if (length > 1) writer.put(of[token] & ((1u << (length - 1)) - 1), length - 1);
  }
}

bool Frequencies::read(BitReader& reader, unsigned count_max) noexcept {
  of.fill(0);
  count = static_cast<unsigned>(reader.get(count_bits));
  if (count > count_max) return false;
  std::uint32_t sum = 0;
  for (unsigned token = 0; token < count; ++token) {
    const auto length = static_cast<unsigned>(reader.get(length_bits));
    if (length > kernels::rans_bits + 1) return false;
    if (length == 0) continue;
    of[token] = static_cast<std::uint16_t>(1u << (length - 1) | reader.get(length - 1));
    sum += of[token];
  }
  return count == 0 || (sum == rans_one && of[count - 1] != 0);
}

void Frequencies::fill_slots(std::span<std::uint32_t> slots) const noexcept {
  assert(count > 0 && slots.size() >= rans_one);
  std::uint32_t* out = slots.data();
  for (unsigned token = 0; token < count; ++token) {
    const std::uint32_t frequency = of[token];
    for (std::uint32_t place = 0; place < frequency; ++place) *out++ = kernels::rans_slot(place, frequency, token);
  }
}

void Frequencies::fill_ranges(std::span<std::uint32_t> ranges) const noexcept {
  std::uint32_t before = 0;
  for (unsigned token = 0; token < count; ++token) {
    ranges[token] = kernels::rans_range(of[token], before);
    before += of[token];
  }
}

void read_rans(ByteReader& reader, unsigned lanes, std::uint64_t words, kernels::RansDecoding& out) noexcept {
  out = {};
  out.lanes = lanes;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    out.states[lane] = reader.u32();
    reader.require(out.states[lane] >= kernels::rans_state_min);
  }
  reader.require(words <= reader.remaining() / 2, errc::truncated);
  const Bytes coded = reader.bytes(reader.ok() ? 2 * words : 0);
  out.words = coded.data();
  out.end = coded.data() + coded.size();
}

Result<void> finish_rans(const kernels::RansDecoding& from) noexcept {
  if (from.overrun) return errc::truncated;
  if (from.words != from.end) return errc::trailing_bytes;
  for (unsigned lane = 0; lane < from.lanes; ++lane) {
    if (from.states[lane] != kernels::rans_state_min) return errc::malformed_payload;
  }
  return {};
}

unsigned lanes_for(std::size_t symbols) noexcept {
  if (symbols < 2000) return 4;
  return symbols < 20000 ? 16 : 32;
}

}  // namespace deltarelay::codec
