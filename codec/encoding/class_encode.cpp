// The encoding half of class. FORMAT.md, "class".
#include <algorithm>
#include <cassert>
#include <cmath>

#include "codec/bytes.hpp"
#include "codec/encoding/class_code.hpp"
#include "codec/encoding/class_format.hpp"
#include "codec/kernels/cpu.hpp"

namespace deltarelay::codec {
namespace {

using namespace class_format;
using kernels::on_this_cpu;

// Symbols of a model: gap token t of class c is c * gap_tokens + t; the step tokens of the contexts come after those.
constexpr std::size_t gap_symbol_count = class_count_max * gap_tokens;
constexpr std::size_t symbol_count = gap_symbol_count + class_count_max * tokens_max;
// Kernels write whole vectors.
constexpr std::size_t slack = 64;

// A class's ranks as gap symbols and low bits.
DELTARELAY_HOT inline std::size_t put_gaps(std::span<const std::uint32_t> ranks, unsigned low_bits, std::uint16_t first,
                                           std::uint16_t* symbols, std::array<std::uint32_t, gap_tokens>& counts,
                                           BitWriter& low) noexcept {
  const std::uint16_t* const begin = symbols;
  const std::uint32_t low_mask = (1u << low_bits) - 1;
  std::uint32_t expected = 0;
  for (const std::uint32_t rank : ranks) {
    const std::uint32_t gap = rank - expected;
    expected = rank + 1;
    std::uint32_t token = gap >> low_bits;
    for (; token >= gap_escape; token -= gap_escape) {
      *symbols++ = static_cast<std::uint16_t>(first + gap_escape);
      ++counts[gap_escape];
    }
    *symbols++ = static_cast<std::uint16_t>(first + token);
    ++counts[token];
    if (low_bits != 0) low.put(gap & low_mask, low_bits);
  }
  return static_cast<std::size_t>(symbols - begin);
}

// Escapes a class of `members` elements can need, beside one token per change.
std::size_t escapes_max(std::size_t members, unsigned low_bits) noexcept {
  return (members >> low_bits) / gap_escape + 1;
}

template <class Element>
DELTARELAY_HOT inline void put_steps(const std::byte* steps, std::size_t count, const std::uint8_t* keys,
                                     const std::array<std::uint8_t, 256>& context_of, std::uint16_t* symbols,
                                     std::array<std::array<std::uint32_t, tokens_max>, class_count_max>& counts,
                                     BitWriter& raw) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const StepToken step = step_token(Element{0}, load_le<Element>(steps + i * sizeof(Element)));
    const std::size_t c = context_of[keys[i]];
    symbols[i] = static_cast<std::uint16_t>(gap_symbol_count + c * tokens_max + step.token);
    ++counts[c][step.token];
    if (step.raw_bits == 0) continue;
    if (step.raw_bits > 32) {
      raw.put(step.raw & 0xffffffff, 32);
      raw.put(step.raw >> 32, step.raw_bits - 32u);
    } else {
      raw.put(step.raw, step.raw_bits);
    }
  }
}

}  // namespace

void ClassEncoder::clear() noexcept {
  model_count_ = 0;
  blocks_.clear();
  tables_.clear();
  symbols_used_ = bits_used_ = 0;
}

std::optional<std::size_t> ClassEncoder::add_model(const ClassSample& sample) {
  if (model_count_ == class_models_max) return std::nullopt;
  if (model_count_ == models_.size()) models_.push_back(std::make_unique<Model>());
  Model& model = *models_[model_count_];
  model.code = sample.fit();
  model.map = model.code.map();
  model.context_of = model.code.contexts.part_of();
  model.gap_counts = {};
  model.step_counts = {};
  return model_count_++;
}

std::size_t ClassEncoder::collect(std::size_t model, const ScannedBlock& scanned) {
  assert(model < model_count_ && scanned.changed_count > 0);
  Block& block = blocks_.emplace_back();
  block.model = model;
  collect_gaps(*models_[model], block, scanned);
  collect_step_symbols(*models_[model], block, scanned);
  return blocks_.size() - 1;
}

void ClassEncoder::collect_gaps(Model& model, Block& block, const ScannedBlock& scanned) {
  const unsigned classes = model.code.classes.count;
  const std::size_t changes = scanned.changed_count;
  const std::size_t room = changes + slack;
  kernels::ClassSplit split;
  ranks_.reserve(room * classes);
  for (unsigned c = 0; c < classes; ++c) split.ranks[c] = ranks_.data() + c * room;
  split.keys = keys_.reserve(changes + slack);
  split.steps = steps_.reserve(changes * scanned.width + slack);
  kernels::class_split(model.map, scanned.base.data(), scanned.next.data(), scanned.width, scanned.elements(),
                       scanned.changed.data(), split);

  std::size_t symbols_max = changes, low_bits = 0;
  for (unsigned c = 0; c < classes; ++c) {
    const auto found = static_cast<std::size_t>(split.ranks[c] - (ranks_.data() + c * room));
    if (found != 0) symbols_max += escapes_max(split.members[c], model.code.gaps[c].low_bits);
    low_bits += found * model.code.gaps[c].low_bits;
  }
  block.symbols_at = symbols_used_;
  block.low_at = bits_used_;
  std::uint16_t* symbols = symbols_.reserve(symbols_used_ + symbols_max + slack) + symbols_used_;
  bits_.reserve(bits_used_ + low_bits / 8 + slack);
  BitWriter low(MutableBytes(bits_.data(), bits_.size()).subspan(bits_used_));
  for (unsigned c = 0; c < classes; ++c) {
    const std::uint32_t* const begin = ranks_.data() + c * room;
    const std::span<const std::uint32_t> ranks(begin, split.ranks[c]);
    const auto count = on_this_cpu([&]() DELTARELAY_HOT {
      return put_gaps(ranks, model.code.gaps[c].low_bits, static_cast<std::uint16_t>(c * gap_tokens), symbols,
                      model.gap_counts[c], low);
    });
    block.gap_symbols[c] = static_cast<std::uint32_t>(count);
    symbols += count;
  }
  symbols_used_ = static_cast<std::size_t>(symbols - symbols_.data());
  block.low_bytes = low.finish();
  bits_used_ += block.low_bytes;
}

void ClassEncoder::collect_step_symbols(Model& model, Block& block, const ScannedBlock& scanned) {
  const std::size_t changes = scanned.changed_count;
  std::uint16_t* const symbols = symbols_.reserve(symbols_used_ + changes + slack) + symbols_used_;
  bits_.reserve(bits_used_ + changes * scanned.width + slack);
  BitWriter raw(MutableBytes(bits_.data(), bits_.size()).subspan(bits_used_));
  const auto put = [&](auto element) {
    on_this_cpu([&]() DELTARELAY_HOT {
      put_steps<decltype(element)>(steps_.data(), changes, keys_.data(), model.context_of, symbols, model.step_counts,
                                   raw);
      return 0;
    });
  };
  switch (scanned.width) {
    case 1:
      put(std::uint8_t{});
      break;
    case 2:
      put(std::uint16_t{});
      break;
    case 4:
      put(std::uint32_t{});
      break;
    default:
      put(std::uint64_t{});
      break;
  }
  block.step_symbols = changes;
  symbols_used_ += changes;
  block.raw_at = bits_used_;
  block.raw_bytes = raw.finish();
  bits_used_ += block.raw_bytes;
}

void ClassEncoder::fit_tables(Model& model) {
  model.ranges.assign(symbol_count, 0);
  model.reciprocals.assign(symbol_count, 1.0f);
  const std::span ranges(model.ranges);
  const std::span reciprocals(model.reciprocals);
  for (unsigned c = 0; c < model.code.classes.count; ++c) {
    Frequencies& tokens = model.code.gaps[c].tokens;
    tokens.fit(model.gap_counts[c]);
    tokens.fill_ranges(ranges.subspan(c * gap_tokens), reciprocals.subspan(c * gap_tokens));
  }
  for (unsigned c = 0; c < model.code.contexts.count; ++c) {
    // A context that no change met still has a table.
    if (std::ranges::all_of(model.step_counts[c], [](std::uint32_t n) { return n == 0; })) model.step_counts[c][0] = 1;
    model.code.steps[c].fit(model.step_counts[c]);
    const std::size_t at = gap_symbol_count + c * tokens_max;
    model.code.steps[c].fill_ranges(ranges.subspan(at), reciprocals.subspan(at));
  }
}

void ClassEncoder::close() {
  std::vector<ClassModel> codes;
  for (std::size_t i = 0; i < model_count_; ++i) {
    fit_tables(*models_[i]);
    codes.push_back(models_[i]->code);
  }
  if (!codes.empty() && !blocks_.empty()) tables_ = write_class_models(codes);
}

void ClassEncoder::write(std::size_t number, std::vector<std::byte>& out) {
  const Block& block = blocks_[number];
  const Model& model = *models_[block.model];
  const unsigned classes = model.code.classes.count;
  std::size_t gaps = 0;
  for (unsigned c = 0; c < classes; ++c) gaps += block.gap_symbols[c];
  const std::size_t count = gaps + block.step_symbols;

  words_.reserve(2 * count + 2 * slack);
  std::byte* const words_end = words_.data() + words_.size();
  kernels::RansEncoding coder = begin_rans(lanes_for(count), words_end);
  const std::uint32_t* const ranges = model.ranges.data();
  const float* const reciprocals = model.reciprocals.data();
  const std::uint16_t* symbols = symbols_.data() + block.symbols_at + gaps;
  kernels::rans_encode(coder, ranges, reciprocals, symbols, block.step_symbols);
  for (unsigned c = classes; c-- > 0;) {
    symbols -= block.gap_symbols[c];
    kernels::rans_encode(coder, ranges, reciprocals, symbols, block.gap_symbols[c]);
  }

  ByteWriter writer(out);
  writer.u8(
      static_cast<std::uint8_t>(static_cast<unsigned>(std::countr_zero(coder.lanes)) | block.model << lanes_bits));
  for (unsigned c = 0; c < classes; ++c) writer.varint(block.gap_symbols[c]);
  writer.varint(static_cast<std::uint64_t>(words_end - coder.words) / 2);
  for (unsigned lane = 0; lane < coder.lanes; ++lane) writer.u32(coder.states[lane]);
  writer.bytes(Bytes(coder.words, words_end));
  writer.bytes(Bytes(bits_.data() + block.low_at, block.low_bytes));
  writer.bytes(Bytes(bits_.data() + block.raw_at, block.raw_bytes));
}

}  // namespace deltarelay::codec
