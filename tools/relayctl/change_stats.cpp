#include "tools/relayctl/change_stats.hpp"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "codec/kernels/scan.hpp"

namespace deltarelay::relayctl {
namespace {

using codec::Bytes;
using codec::DType;

template <class Element>
Element element_at(Bytes bytes, std::size_t index) noexcept {
  Element out;
  std::memcpy(&out, bytes.data() + index * sizeof(Element), sizeof(Element));
  if constexpr (std::endian::native == std::endian::big && sizeof(Element) > 1) {
    static_assert(sizeof(Element) <= 8);
    Element swapped = 0;
    for (std::size_t i = 0; i < sizeof(Element); ++i)
      swapped = static_cast<Element>(swapped << 8 | ((out >> (8 * i)) & 0xff));
    return swapped;
  }
  return out;
}

/// Bits to say which `part` of `whole` things are meant, by a code that knows both numbers.
double choice_bits(double part, double whole) {
  if (part <= 0 || part >= whole) return 0;
  const double p = part / whole;
  return -whole * (p * std::log2(p) + (1 - p) * std::log2(1 - p));
}

/// Bits to name the step of every change, with the raw bits of large ones.
double step_bits(const std::array<std::uint64_t, step_tokens_max>& steps) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : steps) total += count;
  double bits = 0;
  for (unsigned token = 0; token < steps.size(); ++token) {
    if (steps[token] == 0) continue;
    const auto count = static_cast<double>(steps[token]);
    bits += count * (std::log2(static_cast<double>(total) / count) + codec::step_raw_bits(token));
  }
  return bits;
}

}  // namespace

ExponentField exponent_field(DType dtype) noexcept {
  switch (dtype) {
    case DType::BF16:
      return {7, 8, 127, true};
    case DType::F16:
      return {10, 5, 15, true};
    case DType::F32:
      return {23, 8, 127, true};
    case DType::F64:
      return {52, 11, 1023, true};
    case DType::F8_E5M2:
      return {2, 5, 15, true};
    case DType::F8_E4M3:
      return {3, 4, 7, false};
    case DType::F8_E5M2FNUZ:
      return {2, 5, 16, false};
    case DType::F8_E4M3FNUZ:
      return {3, 4, 8, false};
    case DType::F8_E8M0:
      return {0, 8, 127, true};
    default:
      return {};
  }
}

void ChangeStats::add_block(DType dtype, Bytes base, Bytes next) {
  assert(base.size() == next.size());
  DTypeStats& stats = dtypes_[static_cast<std::size_t>(dtype)];
  const unsigned width = codec::block_width(dtype, next.size());
  // A block that is no whole number of elements is taken as bytes; then there are no exponents to read.
  const ExponentField field = width == codec::element_width(dtype) ? exponent_field(dtype) : ExponentField{};
  if (stats.exponents.empty()) stats.exponents.resize(std::size_t{1} << exponent_field(dtype).bits);
  mask_.resize(codec::kernels::mask_words(next.size() / width));
  stats.changed += codec::kernels::scan_changes(base, next, width, mask_.data());
  stats.elements += next.size() / width;
  switch (width) {
    case 1:
      return add_elements<std::uint8_t>(stats, field, base, next);
    case 2:
      return add_elements<std::uint16_t>(stats, field, base, next);
    case 4:
      return add_elements<std::uint32_t>(stats, field, base, next);
    default:
      return add_elements<std::uint64_t>(stats, field, base, next);
  }
}

template <class Element>
void ChangeStats::add_elements(DTypeStats& stats, ExponentField field, Bytes base, Bytes next) {
  const std::size_t count = next.size() / sizeof(Element);
  const auto exponent_bits = static_cast<std::uint64_t>((std::uint64_t{1} << field.bits) - 1);
  const auto exponent_of = [&](Element value) {
    return static_cast<std::size_t>((std::uint64_t{value} >> field.shift) & exponent_bits);
  };
  if (field.bits == 0) {
    stats.exponents[0].elements += count;
  } else {
    for (std::size_t i = 0; i < count; ++i) ++stats.exponents[exponent_of(element_at<Element>(base, i))].elements;
  }
  for (std::size_t word = 0; word < mask_.size(); ++word) {
    for (std::uint64_t bits = mask_[word]; bits != 0; bits &= bits - 1) {
      const std::size_t i = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
      const auto old = element_at<Element>(base, i);
      ExponentStats& exponent = stats.exponents[exponent_of(old)];
      ++exponent.changed;
      ++exponent.steps[codec::step_token(old, element_at<Element>(next, i)).token];
    }
  }
}

void ChangeStats::merge(const ChangeStats& other) {
  for (std::size_t d = 0; d < dtypes_.size(); ++d) {
    const DTypeStats& from = other.dtypes_[d];
    DTypeStats& to = dtypes_[d];
    if (from.exponents.empty()) continue;
    if (to.exponents.empty()) to.exponents.resize(from.exponents.size());
    to.elements += from.elements;
    to.changed += from.changed;
    for (std::size_t e = 0; e < from.exponents.size(); ++e) {
      to.exponents[e].elements += from.exponents[e].elements;
      to.exponents[e].changed += from.exponents[e].changed;
      for (std::size_t t = 0; t < step_tokens_max; ++t) to.exponents[e].steps[t] += from.exponents[e].steps[t];
    }
  }
}

std::uint64_t ChangeStats::elements() const noexcept {
  std::uint64_t out = 0;
  for (const DTypeStats& stats : dtypes_) out += stats.elements;
  return out;
}

std::uint64_t ChangeStats::changed() const noexcept {
  std::uint64_t out = 0;
  for (const DTypeStats& stats : dtypes_) out += stats.changed;
  return out;
}

ChangeBounds ChangeStats::bounds() const {
  double order0 = 0, given_exponent = 0;
  for (const DTypeStats& stats : dtypes_) {
    std::array<std::uint64_t, step_tokens_max> steps{};
    for (const ExponentStats& exponent : stats.exponents) {
      given_exponent += choice_bits(static_cast<double>(exponent.changed), static_cast<double>(exponent.elements));
      given_exponent += step_bits(exponent.steps);
      for (std::size_t t = 0; t < steps.size(); ++t) steps[t] += exponent.steps[t];
    }
    order0 += choice_bits(static_cast<double>(stats.changed), static_cast<double>(stats.elements)) + step_bits(steps);
  }
  return {order0 / 8, given_exponent / 8};
}

std::vector<StepRow> ChangeStats::steps() const {
  std::array<std::uint64_t, step_tokens_max> total{};
  for (const DTypeStats& stats : dtypes_)
    for (const ExponentStats& exponent : stats.exponents)
      for (std::size_t t = 0; t < total.size(); ++t) total[t] += exponent.steps[t];
  std::vector<StepRow> out;
  for (unsigned token = 0; token < total.size(); token += 2) {
    if (total[token] + total[token + 1] == 0) continue;
    StepRow row{token / 2 + 1, token / 2 + 1, total[token], total[token + 1]};
    if (token >= codec::small_step_tokens) {
      const unsigned bits = codec::step_raw_bits(token);
      // The first power of two has a token of its own (8).
      row.magnitude_min = bits == 3 ? 9 : std::uint64_t{1} << bits;
      row.magnitude_max = (std::uint64_t{1} << bits) - 1 + (std::uint64_t{1} << bits);
    }
    out.push_back(row);
  }
  return out;
}

}  // namespace deltarelay::relayctl
