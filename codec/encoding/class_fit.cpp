#include "codec/encoding/class_fit.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "codec/bytes.hpp"
#include "codec/kernels/scan.hpp"

namespace deltarelay::codec {
namespace {

constexpr std::size_t piece_elements = 512;
constexpr std::size_t counted_every = 4;  // keys of all elements are needed less exactly than those of the changed ones
constexpr std::size_t buckets_max = 32;
// About what a table takes.
constexpr double table_bits = 160;

template <class Element>
std::uint8_t key_at(Bytes block, std::size_t i) noexcept {
  return class_key(load_le<Element>(block.data() + i * sizeof(Element)));
}

template <class Element>
void count_keys(Bytes base, std::array<std::uint32_t, 256>& keys) noexcept {
  for (std::size_t i = 0; i < base.size() / sizeof(Element); ++i) ++keys[key_at<Element>(base, i)];
}

template <class Element, class Steps>
void count_steps(Bytes base, Bytes next, std::span<const std::uint64_t> changed, Steps& steps) noexcept {
  for (std::size_t word = 0; word < changed.size(); ++word) {
    for (std::uint64_t bits = changed[word]; bits != 0; bits &= bits - 1) {
      const std::size_t at = (word * 64 + static_cast<std::size_t>(std::countr_zero(bits))) * sizeof(Element);
      const auto old = load_le<Element>(base.data() + at);
      const std::size_t token = step_token(old, load_le<Element>(next.data() + at)).token;
      auto& counts = steps[class_key(old)];
      ++counts[std::min(token, counts.size() - 1)];
    }
  }
}

template <class Count>
void count(unsigned width, const Count& count_of) noexcept {
  switch (width) {
    case 1:
      return count_of(std::uint8_t{});
    case 2:
      return count_of(std::uint16_t{});
    case 4:
      return count_of(std::uint32_t{});
    default:
      return count_of(std::uint64_t{});
  }
}

double gap_bits(double members, double changes) noexcept {
  if (changes <= 0 || changes >= members) return 0;
  const double p = changes / members;
  return -members * (p * std::log2(p) + (1 - p) * std::log2(1 - p));
}

// n * log2(n), looked up: the step cost of each interval asks for it once per token.
double n_log_n(std::uint32_t n) noexcept {
  constexpr std::uint32_t size = 4096;
  static const std::vector<double> table = [] {
    std::vector<double> out(size);
    for (std::uint32_t i = 1; i < size; ++i) out[i] = i * std::log2(static_cast<double>(i));
    return out;
  }();
  return n < size ? table[n] : n * std::log2(static_cast<double>(n));
}

// What the steps cost in a context of their own. An entropy taken from few steps is too low, by about half a bit of
// information per token that occurred; without that correction the fit would part what chance parted.
double step_bits(std::span<const std::uint32_t> tokens) noexcept {
  double bits = 0;
  std::uint32_t changes = 0, kinds = 0;
  for (const std::uint32_t n : tokens) {
    bits -= n_log_n(n);
    changes += n;
    kinds += n != 0 ? 1 : 0;
  }
  return bits + n_log_n(changes) + 0.72 * kinds;
}

// The best ways to cut buckets [0, j) into c parts, for all c and j.
class Partition {
 public:
  explicit Partition(std::size_t buckets) : count_(buckets) {
    for (auto& row : bits_) row.fill(std::numeric_limits<double>::infinity());
    bits_[0][0] = 0;
  }
  /// Offers buckets [i, j) as one part. Called in ascending order of j.
  void offer(std::size_t i, std::size_t j, double bits) noexcept {
    for (unsigned c = 1; c <= class_count_max; ++c) {
      if (bits_[c - 1][i] + bits >= bits_[c][j]) continue;
      bits_[c][j] = bits_[c - 1][i] + bits;
      from_[c][j] = i;
    }
  }
  /// First bucket of each part, and the end of the last.
  [[nodiscard]] std::vector<std::size_t> best() const {
    unsigned parts = 1;
    for (unsigned c = 2; c <= class_count_max; ++c) {
      if (bits_[c][count_] < bits_[parts][count_]) parts = c;
    }
    std::vector<std::size_t> out(parts + 1, count_);
    for (unsigned c = parts; c > 0; --c) out[c - 1] = from_[c][out[c]];
    return out;
  }

 private:
  std::size_t count_;
  std::array<std::array<double, buckets_max + 1>, class_count_max + 1> bits_{};
  std::array<std::array<std::size_t, buckets_max + 1>, class_count_max + 1> from_{};
};

template <class Bucket>
KeyParts parts_of(std::span<const Bucket> buckets, const std::vector<std::size_t>& cut) noexcept {
  KeyParts out;
  out.count = static_cast<unsigned>(cut.size() - 1);
  for (unsigned part = 1; part < out.count; ++part) out.first_key[part] = buckets[cut[part]].first_key;
  return out;
}

// Tokens of about a quarter to a half of the mean gap: the low bits are then uniform for all that matters (0.1 % of the
// size), and sixteen tokens reach far enough.
unsigned low_bits_for(double members, double changes) noexcept {
  const double mean = members / std::max(changes, 0.5);
  if (mean < 4) return 0;
  return std::min(static_cast<unsigned>(std::log2(mean)) - 1, gap_low_bits_max);
}

}  // namespace

void ClassSample::add(unsigned width, Bytes base, Bytes next, std::size_t elements_wanted) {
  const std::size_t elements = base.size() / width;
  elements_ += elements;
  const std::size_t pieces = (std::max<std::size_t>(elements_wanted, 1) + piece_elements - 1) / piece_elements;
  const std::size_t stride = std::max(piece_elements, elements / pieces / 64 * 64);
  std::array<std::uint64_t, kernels::mask_words(piece_elements)> mask;
  std::size_t piece = 0;
  for (std::size_t first = 0; first < elements; first += stride, ++piece) {
    const std::size_t size = std::min(piece_elements, elements - first);
    const Bytes old = base.subspan(first * width, size * width), now = next.subspan(first * width, size * width);
    scanned_ += size;
    changed_ += kernels::scan_changes(old, now, width, mask.data());
    const std::span words = std::span(mask).first(kernels::mask_words(size));
    count(width, [&](auto element) { count_steps<decltype(element)>(old, now, words, steps_); });
    if (piece % counted_every != 0) continue;
    counted_ += size;
    count(width, [&](auto element) { count_keys<decltype(element)>(old, members_); });
  }
}

// One bucket per key that occurs; where there are too many, keys that together have a bucket's share of the changes.
std::vector<ClassSample::Bucket> ClassSample::buckets() const {
  const double members_scale =
      static_cast<double>(scanned_) / static_cast<double>(std::max<std::uint64_t>(counted_, 1));
  std::array<std::uint32_t, 256> changes{};
  std::size_t occupied = 0;
  for (unsigned key = 0; key < 256; ++key) {
    for (const std::uint32_t n : steps_[key]) changes[key] += n;
    occupied += members_[key] != 0 || changes[key] != 0 ? 1 : 0;
  }
  std::vector<Bucket> out;
  std::uint64_t changes_before = 0, last_share = 0;
  for (unsigned key = 0; key < 256; ++key) {
    const double members = std::max<double>(members_[key] * members_scale, changes[key]);
    if (members == 0) continue;
    const std::uint64_t share = changes_before * (buckets_max - 1) / std::max<std::uint64_t>(changed_, 1);
    changes_before += changes[key];
    if (out.empty() || occupied <= buckets_max || share != last_share) {
      out.emplace_back().first_key = static_cast<std::uint8_t>(key);
    }
    last_share = share;
    out.back().members += members;
    out.back().changes += changes[key];
    for (std::size_t token = 0; token < sampled_tokens; ++token) out.back().steps[token] += steps_[key][token];
  }
  return out;
}

ClassModel ClassSample::fit() const {
  ClassModel model;
  const std::vector<Bucket> all = buckets();
  if (all.empty()) return model;
  const double scale = static_cast<double>(elements_) / static_cast<double>(std::max<std::uint64_t>(scanned_, 1));
  Partition classes(all.size()), contexts(all.size());
  for (std::size_t j = 1; j <= all.size(); ++j) {
    double members = 0, changes = 0;
    std::array<std::uint32_t, sampled_tokens> steps{};
    for (std::size_t i = j; i-- > 0;) {
      members += all[i].members;
      changes += all[i].changes;
      for (std::size_t token = 0; token < sampled_tokens; ++token) steps[token] += all[i].steps[token];
      classes.offer(i, j, gap_bits(members, changes) * scale + table_bits);
      contexts.offer(i, j, step_bits(steps) * scale + table_bits);
    }
  }
  const std::vector<std::size_t> cut = classes.best();
  model.classes = parts_of(std::span(all), cut);
  model.contexts = parts_of(std::span(all), contexts.best());
  for (unsigned c = 0; c < model.classes.count; ++c) {
    double members = 0, changes = 0;
    for (std::size_t i = cut[c]; i < cut[c + 1]; ++i) {
      members += all[i].members;
      changes += all[i].changes;
    }
    model.gaps[c].low_bits = low_bits_for(members, changes);
  }
  return model;
}

}  // namespace deltarelay::codec
