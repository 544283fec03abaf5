// The decoding half of class. Reads a peer's bytes: tables are checked as a whole before the first look-up, every count
// against the block, every rank before it is marked, and all bit readers see zeros past their ends.
//
// Two passes. Gaps of all classes become marks, one bit per rank. Then tile by tile, while base and output are in the
// nearest cache: marks become positions, the old values found there pick the tables of the steps, and the steps are
// added.
#include <bit>
#include <cstring>

#include "codec/bytes.hpp"
#include "codec/encoding/class_code.hpp"
#include "codec/encoding/class_format.hpp"
#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec {

using namespace class_format;
using kernels::on_this_cpu;
using kernels::rans_one;

struct ClassDecoder::Model {
  ClassModel code;
  kernels::ClassMap map;
  std::array<std::uint8_t, 256> context_of{};
  unsigned step_tokens = 0;  // the most that a context has
  bool ready = false;        // slots are filled when a block first asks for them
  std::vector<std::uint32_t> gap_slots, step_slots;

  void make_ready();
};

struct ClassDecoder::Block {
  Model* model = nullptr;
  std::size_t elements = 0;
  kernels::RansDecoding coder;
  std::array<std::size_t, class_count_max> gap_symbols{};
  std::array<std::size_t, class_count_max> marked_bytes{};
  std::size_t changes = 0;
  Bytes bits;  // low bits of gaps, then raw bits of steps
  std::size_t marks_stride = 0;
};

namespace {

constexpr std::size_t slack = 64;
constexpr std::size_t tile_bytes = 16384;

constexpr std::size_t together = 4;

// Of gap tokens, which are below 16.
DELTARELAY_HOT inline bool has_escape(const std::uint8_t* tokens) noexcept {
  static_assert(gap_escape == 15);
  const auto x = load_le<std::uint32_t>(reinterpret_cast<const std::byte*>(tokens));
  return (x & x >> 1 & x >> 2 & x >> 3 & 0x01010101u) != 0;
}

// Ranks of one class's changes, ascending; returns how many. A rank may leave the block, and low bits may be missing.
// Some low bits are read at once where no token is an escape: a rank waits for the one before, but not for the reader.
// REQUIRES room for a rank per token.
DELTARELAY_HOT inline std::size_t ranks_of(std::span<const std::uint8_t> tokens, unsigned low_bits, BitReader& low,
                                           std::uint64_t* ranks) noexcept {
  const std::uint64_t* const begin = ranks;
  const std::uint64_t mask = (std::uint64_t{1} << low_bits) - 1;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < tokens.size();) {
    if (i + together <= tokens.size() && low_bits * together <= 56 && !has_escape(&tokens[i])) [[likely]] {
      const std::uint64_t bits = low.peek();
      low.skip(low_bits * static_cast<unsigned>(together));
      for (std::size_t j = 0; j < together; ++j) {
        next += (std::uint64_t{tokens[i + j]} << low_bits) + (bits >> (j * low_bits) & mask);
        ranks[j] = next++;
      }
      ranks += together;
      i += together;
      continue;
    }
    const std::uint8_t token = tokens[i++];
    next += std::uint64_t{token} << low_bits;
    if (token == gap_escape) continue;
    next += low.get(low_bits);
    *ranks++ = next++;
  }
  return static_cast<std::size_t>(ranks - begin);
}

DELTARELAY_HOT inline void mark(std::uint64_t rank, std::byte* marks) noexcept {
  marks[rank >> 3] |= static_cast<std::byte>(1u << (rank & 7));
}

// From four places of the list in turn: neighbours share a byte, and one mark in it waits for the one before.
DELTARELAY_HOT inline void mark_ranks(std::span<const std::uint64_t> ranks, std::byte* marks) noexcept {
  const std::size_t quarter = ranks.size() / 4;
  for (std::size_t i = 0; i < quarter; ++i) {
    for (std::size_t part = 0; part < 4; ++part) mark(ranks[part * quarter + i], marks);
  }
  for (std::size_t i = 4 * quarter; i < ranks.size(); ++i) mark(ranks[i], marks);
}

constexpr auto small_steps = [] {
  std::array<std::uint64_t, small_step_tokens> out{};
  for (unsigned token = 0; token < small_step_tokens; ++token) out[token] = step_of(token, 0);
  return out;
}();

template <class Element>
DELTARELAY_HOT inline void put_steps(std::span<const std::uint8_t> tokens, BitReader& raw, std::byte* steps) noexcept {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const unsigned token = tokens[i];
    std::uint64_t step = small_steps[token % small_step_tokens];
    if (token >= small_step_tokens) [[unlikely]]
      step = step_of(token, raw.get(step_raw_bits(token)));
    store_le(steps + i * sizeof(Element), static_cast<Element>(step));
  }
}

void put_steps(unsigned width, std::span<const std::uint8_t> tokens, BitReader& raw, std::byte* steps) noexcept {
  const auto put = [&](auto element) {
    on_this_cpu([&]() DELTARELAY_HOT {
      put_steps<decltype(element)>(tokens, raw, steps);
      return 0;
    });
  };
  switch (width) {
    case 1:
      return put(std::uint8_t{});
    case 2:
      return put(std::uint16_t{});
    case 4:
      return put(std::uint32_t{});
    default:
      return put(std::uint64_t{});
  }
}

// The low bits end within a byte whose rest is zero; the raw bits begin after it.
Result<Bytes> after(Bytes bits, const BitReader& low) noexcept {
  const std::uint64_t used = (low.position() + 7) / 8;
  if (used > bits.size()) return errc::truncated;
  const auto padding = static_cast<unsigned>(used * 8 - low.position());
  if ((low.peek() & ((1u << padding) - 1)) != 0) return errc::malformed_payload;
  return bits.subspan(static_cast<std::size_t>(used));
}

}  // namespace

void ClassDecoder::Model::make_ready() {
  if (ready) return;
  gap_slots.resize(class_count_max * rans_one);
  step_slots.resize(class_count_max * rans_one);
  for (unsigned c = 0; c < code.classes.count; ++c) {
    if (code.gaps[c].tokens.count != 0) code.gaps[c].tokens.fill_slots(std::span(gap_slots).subspan(c * rans_one));
  }
  for (unsigned c = 0; c < code.contexts.count; ++c) {
    code.steps[c].fill_slots(std::span(step_slots).subspan(c * rans_one));
  }
  ready = true;
}

ClassDecoder::ClassDecoder() = default;
ClassDecoder::ClassDecoder(ClassDecoder&&) noexcept = default;
ClassDecoder& ClassDecoder::operator=(ClassDecoder&&) noexcept = default;
ClassDecoder::~ClassDecoder() = default;

// A frame's blocks come one after the other, so the models of the last frame are kept.
Result<void> ClassDecoder::use_tables(Bytes tables) {
  if (!models_.empty() && tables.size() == tables_.size() &&
      std::memcmp(tables.data(), tables_.data(), tables.size()) == 0) {
    return {};
  }
  models_.clear();
  auto codes = read_class_models(tables);
  if (!codes) return codes.error();
  for (const ClassModel& code : *codes) {
    auto model = std::make_unique<Model>();
    model->code = code;
    model->map = code.map();
    model->context_of = code.contexts.part_of();
    for (const Frequencies& steps : code.steps) model->step_tokens = std::max(model->step_tokens, steps.count);
    models_.push_back(std::move(model));
  }
  tables_.assign(tables.begin(), tables.end());
  return {};
}

Result<void> ClassDecoder::read_head(Bytes data, std::size_t elements, Block& block) const {
  ByteReader head(data);
  const std::uint8_t first = head.u8();
  const unsigned lanes_log2 = first & ((1u << lanes_bits) - 1);
  const std::size_t model = first >> lanes_bits;
  head.require(lanes_log2 <= lanes_log2_max && model < models_.size());
  if (!head.ok()) return head.finish();
  block.model = models_[model].get();
  block.elements = elements;
  std::uint64_t symbols = 0;
  for (unsigned c = 0; c < block.model->code.classes.count; ++c) {
    const std::uint64_t count = head.varint();
    head.require(count <= elements - symbols && (count == 0 || block.model->code.gaps[c].tokens.count != 0));
    if (!head.ok()) return head.finish();
    block.gap_symbols[c] = static_cast<std::size_t>(count);
    symbols += count;
  }
  const std::uint64_t words = head.varint();
  read_rans(head, 1u << lanes_log2, words, block.coder);
  block.bits = head.bytes(head.remaining());
  return head.finish();
}

errc ClassDecoder::mark_changes(Block& block) {
  const ClassModel& code = block.model->code;
  BitReader low(block.bits);
  for (unsigned c = 0; c < code.classes.count; ++c) {
    const std::size_t count = block.gap_symbols[c];
    std::uint8_t* const tokens = tokens_.reserve(count + slack);
    kernels::rans_decode(block.coder, block.model->gap_slots.data() + c * rans_one, nullptr, 0, count, tokens);
    std::uint64_t* const ranks = ranks_.reserve(count + 1);
    const std::size_t changes = on_this_cpu([&]() DELTARELAY_HOT {
      return ranks_of({tokens, count}, code.gaps[c].low_bits, low, ranks);
    });
    if (changes == 0) continue;
    // They ascend, so the last speaks for all.
    if (ranks[changes - 1] >= block.elements) return errc::malformed_payload;
    block.marked_bytes[c] = static_cast<std::size_t>(ranks[changes - 1] >> 3) + 1;
    block.changes += changes;
    on_this_cpu([&]() DELTARELAY_HOT {
      mark_ranks({ranks, changes}, marks_.data() + c * block.marks_stride);
      return 0;
    });
  }
  auto raw = after(block.bits, low);
  if (!raw) return static_cast<errc>(raw.error().value());
  block.bits = *raw;
  return errc::ok;
}

errc ClassDecoder::apply(Block& block, unsigned width, Bytes base, MutableBytes out, DigestStream& digest) {
  const std::size_t tile = tile_bytes / width;
  std::uint8_t* const keys = keys_.reserve(tile + slack);
  const std::array<std::uint8_t, 256>& context_of = block.model->context_of;
  tokens_.reserve(tile + slack);
  steps_.reserve(tile_bytes + slack);
  changed_.reserve(tile / 64);
  BitReader raw(block.bits);
  kernels::ClassMarks marks;
  marks.bits = marks_.data();
  marks.stride_bytes = block.marks_stride;
  std::size_t done = 0;
  for (std::size_t first = 0; first < block.elements; first += tile) {
    const std::size_t elements = std::min(tile, block.elements - first);
    const std::byte* const old = base.data() + first * width;
    const std::size_t found = kernels::class_find(block.model->map, old, width, elements, marks, changed_.data(), keys);
    for (std::size_t i = 0; i < found; ++i) keys[i] = context_of[keys[i]];
    kernels::rans_decode(block.coder, block.model->step_slots.data(), keys, done, found, tokens_.data());
    put_steps(width, {tokens_.data(), found}, raw, steps_.data());
    kernels::apply_steps(old, width, elements, changed_.data(), steps_.data(), out.data() + first * width);
    digest.update(out.subspan(first * width, elements * width));
    done += found;
  }
  // A mark past the members of its class was never met.
  if (done != block.changes) return errc::malformed_payload;
  auto end = raw.finish();
  if (end) end = finish_rans(block.coder);
  return end ? errc::ok : static_cast<errc>(end.error().value());
}

Result<Digest> ClassDecoder::decode(Bytes data, Bytes tables, unsigned width, Bytes base, MutableBytes out) {
  if (auto read = use_tables(tables); !read) return read.error();
  Block block;
  if (auto read = read_head(data, out.size() / width, block); !read) return read.error();
  if (block.model->step_tokens > step_token_count(width)) return errc::malformed_payload;
  block.model->make_ready();

  block.marks_stride = (block.elements / 8 + 1 + 2 * slack) / slack * slack;
  const std::size_t marks_bytes = block.marks_stride * class_count_max;
  const std::size_t before = marks_.size();
  marks_.reserve(marks_bytes);
  if (marks_.size() != before) std::memset(marks_.data(), 0, marks_.size());
  DigestStream digest;
  errc why = mark_changes(block);
  if (why == errc::ok) why = apply(block, width, base, out, digest);
  // For the next block, whose stride may differ.
  for (unsigned c = 0; c < class_count_max; ++c) {
    std::memset(marks_.data() + c * block.marks_stride, 0, block.marked_bytes[c]);
  }
  if (why != errc::ok) return why;
  return digest.digest();
}

}  // namespace deltarelay::codec
