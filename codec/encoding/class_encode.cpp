// The encoding half of class. FORMAT.md, "class".
#include <algorithm>
#include <cassert>
#include <cmath>

#include "codec/bytes.hpp"
#include "codec/encoding/class_code.hpp"
#include "codec/encoding/class_format.hpp"
#include "codec/kernels/cpu.hpp"
#include "codec/kernels/scan.hpp"

namespace deltarelay::codec {
namespace {

using namespace class_format;
using kernels::on_this_cpu;

// Symbols of a model: gap token t of class c is c * gap_tokens + t; the step tokens of the contexts come after those.
constexpr std::size_t gap_symbol_count = class_count_max * gap_tokens;
constexpr std::size_t symbol_count = gap_symbol_count + class_count_max * tokens_max;
// Kernels write whole vectors.
constexpr std::size_t slack = 64;
constexpr std::size_t scan_tile_bytes = 2048;
static_assert(scan_tile_bytes % (64 * 8) == 0);

// Pass by pass and not change by change: without a dependence from one change to the next, most of it runs in vectors.
DELTARELAY_HOT inline void ranks_to_gaps(std::span<const std::uint32_t> ranks, std::uint32_t* gaps) noexcept {
  if (!ranks.empty()) gaps[0] = ranks[0];
  for (std::size_t i = 1; i < ranks.size(); ++i) gaps[i] = ranks[i] - ranks[i - 1] - 1;
}

// Several values in one put(), which has to wait for the one before it.
DELTARELAY_HOT inline void put_low_bits(std::span<const std::uint32_t> gaps, unsigned low_bits,
                                        BitWriter& low) noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << low_bits) - 1;
  std::size_t i = 0;
  if (low_bits * 4 <= BitWriter::put_bits_max) {
    for (; i + 4 <= gaps.size(); i += 4) {
      const std::uint64_t a = (gaps[i] & mask) | (gaps[i + 1] & mask) << low_bits;
      const std::uint64_t b = (gaps[i + 2] & mask) | (gaps[i + 3] & mask) << low_bits;
      low.put(a | b << (2 * low_bits), 4 * low_bits);
    }
  }
  for (; i < gaps.size(); ++i) low.put(gaps[i] & mask, low_bits);
}

// Gap symbols of a class, whose first is `first`. Returns how many.
DELTARELAY_HOT inline std::size_t put_gaps(std::span<const std::uint32_t> gaps, unsigned low_bits, std::uint16_t first,
                                           std::uint16_t* symbols) noexcept {
  constexpr std::size_t some = 16;
  const std::uint16_t* const begin = symbols;
  std::size_t i = 0;
  while (i < gaps.size()) {
    const std::size_t count = std::min(some, gaps.size() - i);
    std::uint32_t largest = 0;
    if (count == some) {
      for (std::size_t j = 0; j < some; ++j) largest = std::max(largest, gaps[i + j]);
    }
    if (count == some && largest >> low_bits < gap_escape) {
      for (std::size_t j = 0; j < some; ++j) symbols[j] = static_cast<std::uint16_t>(first + (gaps[i + j] >> low_bits));
      symbols += some;
    } else {
      for (std::size_t j = 0; j < count; ++j) {
        std::uint32_t token = gaps[i + j] >> low_bits;
        for (; token >= gap_escape; token -= gap_escape) *symbols++ = static_cast<std::uint16_t>(first + gap_escape);
        *symbols++ = static_cast<std::uint16_t>(first + token);
      }
    }
    i += count;
  }
  return static_cast<std::size_t>(symbols - begin);
}

// Some histograms in turn: a count that goes up twice in a row waits for itself, and most steps are +1 or -1.
template <std::size_t histograms>
DELTARELAY_HOT inline void count_symbols(std::span<const std::uint16_t> symbols,
                                         std::array<std::vector<std::uint32_t>, histograms>& counts) noexcept {
  std::array<std::uint32_t*, histograms> at;
  for (std::size_t h = 0; h < histograms; ++h) at[h] = counts[h].data();
  std::size_t i = 0;
  for (; i + histograms <= symbols.size(); i += histograms) {
    for (std::size_t h = 0; h < histograms; ++h) ++at[h][symbols[i + h]];
  }
  for (; i < symbols.size(); ++i) ++at[0][symbols[i]];
}

// Escapes a class of `members` elements can need, beside one token per change.
std::size_t escapes_max(std::size_t members, unsigned low_bits) noexcept {
  return (members >> low_bits) / gap_escape + 1;
}

// Tokens of the steps -8 to 8, by step + 8. Looked up, since the sign of a step is as good as random: a branch on it
// would be mispredicted every other time.
constexpr unsigned small_step_max = small_step_tokens / 2;
constexpr auto small_step_token = [] {
  std::array<std::uint8_t, 2 * small_step_max + 1> out{};
  for (unsigned m = 1; m <= small_step_max; ++m) {
    out[small_step_max + m] = static_cast<std::uint8_t>(2 * (m - 1));
    out[small_step_max - m] = static_cast<std::uint8_t>(2 * (m - 1) + 1);
  }
  return out;
}();

void put_raw(BitWriter& raw, const StepToken& step) noexcept {
  const unsigned low = std::min<unsigned>(step.raw_bits, 32);
  raw.put(step.raw & 0xffffffff, low);
  if (step.raw_bits > low) raw.put(step.raw >> low, step.raw_bits - low);
}

template <class Element>
DELTARELAY_HOT inline void put_steps(const std::byte* steps, std::size_t count, const std::uint8_t* keys,
                                     const std::array<std::uint8_t, 256>& context_of, std::uint16_t* symbols,
                                     BitWriter& raw) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto step = load_le<Element>(steps + i * sizeof(Element));
    const std::size_t first = gap_symbol_count + context_of[keys[i]] * std::size_t{tokens_max};
    const auto shifted = static_cast<Element>(step + small_step_max);
    if (shifted < small_step_token.size()) [[likely]] {
      symbols[i] = static_cast<std::uint16_t>(first + small_step_token[shifted]);
    } else {
      const StepToken large = step_token(Element{0}, step);
      symbols[i] = static_cast<std::uint16_t>(first + large.token);
      put_raw(raw, large);
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
  for (auto& counts : model.counts) counts.assign(symbol_count, 0);
  return model_count_++;
}

// Tile by tile, so that split and hash find in the nearest cache what the scan has read. Ranks and keys have room for
// as many changes as there are elements; memory that no change reaches is never touched.
void ClassEncoder::scan(std::size_t model, ScannedBlock& block, std::uint64_t* mask) {
  assert(model < model_count_);
  scanned_model_ = model;
  const unsigned width = block.width;
  const std::size_t elements = block.elements();
  ranks_stride_ = elements + slack;
  ranks_.reserve(ranks_stride_ * class_count_max);
  split_ = {};
  for (unsigned c = 0; c < class_count_max; ++c) split_.ranks[c] = ranks_.data() + c * ranks_stride_;
  split_.keys = keys_.reserve(elements + slack);
  split_.steps = steps_.reserve(elements * width + slack);
  block.changed_count = 0;
  const std::size_t tile = scan_tile_bytes / width;
  DigestStream digest;
  std::size_t split = 0;
  for (std::size_t first = 0; first < elements; first += tile) {
    const std::size_t end = std::min(first + tile, elements);
    const auto range = [&](Bytes of, std::size_t from) { return of.subspan(from * width, (end - from) * width); };
    block.changed_count +=
        kernels::scan_changes(range(block.base, first), range(block.next, first), width, mask + first / 64);
    // Up to the first change there may be nothing to split and hash for.
    if (block.changed_count == 0) continue;
    digest.update(range(block.next, split));
    kernels::class_split(models_[model]->map, range(block.base, split).data(), range(block.next, split).data(), width,
                         end - split, mask + split / 64, split_);
    split = end;
  }
  block.changed = {mask, kernels::mask_words(elements)};
  if (block.changed_count != 0) block.target = digest.digest();
}

std::size_t ClassEncoder::collect(const ScannedBlock& scanned) {
  assert(scanned.changed_count > 0);
  assert(scanned.changed_count == static_cast<std::size_t>(split_.keys - keys_.data()));
  Block& block = blocks_.emplace_back();
  block.model = scanned_model_;
  collect_gaps(*models_[block.model], block);
  collect_step_symbols(*models_[block.model], block, scanned);
  const std::span<const std::uint16_t> symbols(symbols_.data() + block.symbols_at, symbols_.data() + symbols_used_);
  on_this_cpu([&]() DELTARELAY_HOT {
    count_symbols(symbols, models_[block.model]->counts);
    return 0;
  });
  return blocks_.size() - 1;
}

void ClassEncoder::collect_gaps(Model& model, Block& block) {
  const unsigned classes = model.code.classes.count;
  std::size_t symbols_max = 0, low_bits = 0;
  for (unsigned c = 0; c < classes; ++c) {
    const auto found = static_cast<std::size_t>(split_.ranks[c] - (ranks_.data() + c * ranks_stride_));
    if (found != 0) symbols_max += found + escapes_max(split_.members[c], model.code.gaps[c].low_bits);
    low_bits += found * model.code.gaps[c].low_bits;
  }
  block.symbols_at = symbols_used_;
  block.low_at = bits_used_;
  std::uint16_t* symbols = symbols_.reserve(symbols_used_ + symbols_max + slack) + symbols_used_;
  bits_.reserve(bits_used_ + low_bits / 8 + slack);
  BitWriter low(MutableBytes(bits_.data(), bits_.size()).subspan(bits_used_));
  for (unsigned c = 0; c < classes; ++c) {
    const std::uint32_t* const begin = ranks_.data() + c * ranks_stride_;
    const std::span<const std::uint32_t> ranks(begin, split_.ranks[c]);
    const std::span<const std::uint32_t> gaps(gaps_.reserve(ranks.size()), ranks.size());
    const unsigned low_bits_here = model.code.gaps[c].low_bits;
    const auto count = on_this_cpu([&]() DELTARELAY_HOT {
      ranks_to_gaps(ranks, gaps_.data());
      if (low_bits_here != 0) put_low_bits(gaps, low_bits_here, low);
      return put_gaps(gaps, low_bits_here, static_cast<std::uint16_t>(c * gap_tokens), symbols);
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
      put_steps<decltype(element)>(steps_.data(), changes, keys_.data(), model.context_of, symbols, raw);
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
  const std::span ranges(model.ranges);
  const std::span<std::uint32_t> counts(model.counts[0]);
  for (std::size_t h = 1; h < histograms; ++h) {
    for (std::size_t symbol = 0; symbol < symbol_count; ++symbol) counts[symbol] += model.counts[h][symbol];
  }
  for (unsigned c = 0; c < model.code.classes.count; ++c) {
    Frequencies& tokens = model.code.gaps[c].tokens;
    tokens.fit(counts.subspan(c * gap_tokens, gap_tokens));
    tokens.fill_ranges(ranges.subspan(c * gap_tokens));
  }
  for (unsigned c = 0; c < model.code.contexts.count; ++c) {
    const std::size_t at = gap_symbol_count + c * tokens_max;
    const std::span<std::uint32_t> steps = counts.subspan(at, tokens_max);
    // A context that no change met still has a table.
    if (std::ranges::all_of(steps, [](std::uint32_t n) { return n == 0; })) steps[0] = 1;
    model.code.steps[c].fit(steps);
    model.code.steps[c].fill_ranges(ranges.subspan(at));
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
  const std::uint16_t* symbols = symbols_.data() + block.symbols_at + gaps;
  kernels::rans_encode(coder, ranges, symbols, block.step_symbols);
  for (unsigned c = classes; c-- > 0;) {
    symbols -= block.gap_symbols[c];
    kernels::rans_encode(coder, ranges, symbols, block.gap_symbols[c]);
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
