#include "codec/encoding/prefix_code.hpp"

#include <algorithm>
#include <cassert>

namespace deltarelay::codec {
namespace {

constexpr unsigned node_count_max = 2 * PrefixCode::token_count_max;

// Lengths of an unlimited Huffman code by the two-queue method: leaves sorted by count, inner nodes made in order of
// their sums, so that the smallest is always at the head of one of the two. Returns the longest length.
unsigned huffman_lengths(std::span<const std::uint32_t> counts, std::span<std::uint8_t> lengths) noexcept {
  std::array<std::uint16_t, PrefixCode::token_count_max> leaves;
  unsigned leaf_count = 0;
  for (unsigned token = 0; token < counts.size(); ++token) {
    lengths[token] = 0;
    if (counts[token] != 0) leaves[leaf_count++] = static_cast<std::uint16_t>(token);
  }
  std::sort(leaves.begin(), leaves.begin() + leaf_count,
            [&](unsigned a, unsigned b) { return counts[a] != counts[b] ? counts[a] < counts[b] : a < b; });
  if (leaf_count == 1) {
    lengths[leaves[0]] = 1;
    return 1;
  }

  std::array<std::uint64_t, node_count_max> weight{};
  std::array<std::uint16_t, node_count_max> parent{};
  for (unsigned i = 0; i < leaf_count; ++i) weight[i] = counts[leaves[i]];
  unsigned next_leaf = 0, next_inner = leaf_count, made = leaf_count;
  const auto take_smallest = [&] {
    const bool leaf = next_leaf < leaf_count && (next_inner >= made || weight[next_leaf] <= weight[next_inner]);
    return leaf ? next_leaf++ : next_inner++;
  };
  for (; made < 2 * leaf_count - 1; ++made) {
    const unsigned a = take_smallest(), b = take_smallest();
    weight[made] = weight[a] + weight[b];
    parent[a] = parent[b] = static_cast<std::uint16_t>(made);
  }
  std::array<std::uint8_t, node_count_max> depth{};
  unsigned longest = 0;
  for (unsigned node = made - 1; node-- > 0;) {
    depth[node] = static_cast<std::uint8_t>(depth[parent[node]] + 1);
    if (node < leaf_count) {
      lengths[leaves[node]] = depth[node];
      longest = std::max<unsigned>(longest, depth[node]);
    }
  }
  return longest;
}

unsigned reversed(unsigned bits, unsigned length) noexcept {
  unsigned out = 0;
  for (unsigned i = 0; i < length; ++i) out |= ((bits >> i) & 1) << (length - 1 - i);
  return out;
}

}  // namespace

void PrefixCode::build(std::span<const std::uint32_t> counts) noexcept {
  assert(counts.size() <= token_count_max);
  std::array<std::uint32_t, token_count_max> scaled{};
  std::ranges::copy(counts, scaled.begin());
  std::array<std::uint8_t, token_count_max> lengths{};
  // Flattening the counts until the longest code fits costs a fraction of a per cent and always ends: with equal counts
  // 138 tokens take 8 bits.
  while (huffman_lengths(std::span(scaled).first(counts.size()), lengths) > bits_max) {
    for (std::uint32_t& count : scaled) count = (count + 1) / 2;
  }
  for (unsigned token = 0; token < token_count_max; ++token) codes_[token] = {0, lengths[token]};
  assign_codes();
}

bool PrefixCode::assign(std::span<const std::uint8_t> lengths) noexcept {
  if (lengths.empty() || lengths.size() > token_count_max || lengths.back() == 0) return false;
  codes_ = {};
  std::uint32_t used = 0, tokens = 0;
  for (unsigned token = 0; token < lengths.size(); ++token) {
    const unsigned length = lengths[token];
    if (length > bits_max) return false;
    codes_[token].length = static_cast<std::uint8_t>(length);
    if (length == 0) continue;
    used += 1u << (bits_max - length);
    ++tokens;
  }
  const bool lonely = tokens == 1 && used == 1u << (bits_max - 1);
  if (used != 1u << bits_max && !lonely) return false;
  assign_codes();
  return true;
}

void PrefixCode::assign_codes() noexcept {
  unsigned next_code = 0;
  token_count_ = 0;
  for (unsigned length = 1; length <= bits_max; ++length) {
    next_code <<= 1;
    for (unsigned token = 0; token < token_count_max; ++token) {
      if (codes_[token].length != length) continue;
      codes_[token].bits = static_cast<std::uint16_t>(reversed(next_code++, length));
      token_count_ = std::max(token_count_, token + 1);
    }
  }
}

void PrefixCode::prepare_decoding() noexcept {
  unsigned longest = 1;
  for (const Code& code : codes_) longest = std::max<unsigned>(longest, code.length);
  const unsigned size = 1u << longest;
  table_mask_ = size - 1;
  for (unsigned token = 0; token < token_count_; ++token) {
    const Code code = codes_[token];
    if (code.length == 0) continue;
    for (unsigned at = code.bits; at < size; at += 1u << code.length) {
      table_[at] = {static_cast<std::uint8_t>(token), code.length};
    }
  }
  // A lone token has the code 0; the other half of its table means the same, so that no input finds an empty entry.
  if (longest == 1 && codes_[token_count_ - 1].bits == 0) {
    bool two = false;
    for (unsigned token = 0; token + 1 < token_count_; ++token) two |= codes_[token].length == 1;
    if (!two) table_[1] = table_[0];
  }
}

}  // namespace deltarelay::codec
