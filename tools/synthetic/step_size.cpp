#include "tools/synthetic/step_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "tools/synthetic/chunks.hpp"
#include "tools/synthetic/workers.hpp"

namespace deltarelay::synthetic {
namespace {

using codec::Checked;
using codec::Failure;
using codec::TensorIndex;

constexpr float never = std::numeric_limits<float>::infinity();

/// The size from which on the stored value of this element changes.
template <class Format>
float threshold(typename Format::Bits stored, float master, float direction) noexcept {
  using Bits = typename Format::Bits;
  if (frozen(master) || direction == 0.0F) return never;
  const auto magnitude = static_cast<Bits>(stored & static_cast<Bits>(~Format::sign_bit));
  const bool outwards = (direction > 0) == (master > 0);
  if (outwards && magnitude >= Format::infinity - 1) return never;
  double boundary = 0;  // towards zero from the smallest value: the sign changes there
  if (outwards || magnitude > 0) {
    const auto neighbour = static_cast<Bits>(outwards ? magnitude + 1 : magnitude - 1);
    boundary = (static_cast<double>(Format::widen(magnitude)) + static_cast<double>(Format::widen(neighbour))) / 2;
  }
  return static_cast<float>(std::abs(boundary - std::abs(static_cast<double>(master))) /
                            std::abs(static_cast<double>(direction)));
}

struct Population {
  std::vector<TensorIndex> tensors;
  std::vector<std::uint64_t> first;  // of each in the count of all; one more at the end
};

Population trainable_of(const codec::Layout& layout) {
  Population all;
  all.first.push_back(0);
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const codec::TensorSpec& tensor = layout.tensors()[i];
    if (!trainable(tensor.dtype) || tensor.bytes == 0) continue;
    all.tensors.push_back(TensorIndex{static_cast<std::uint32_t>(i)});
    all.first.push_back(all.first.back() + elements_of(tensor));
  }
  return all;
}

/// Thresholds of the elements [from, from + out.size()) of the population.
void sample(const TrainingSource& source, const Population& all, std::uint64_t seed, std::uint64_t from,
            std::span<float> out) {
  std::size_t at = 0;
  while (at < out.size()) {
    const std::uint64_t global = from + at;
    const auto which = static_cast<std::size_t>(std::ranges::upper_bound(all.first, global) - all.first.begin()) - 1;
    const codec::TensorSpec& tensor = source.layout().tensor(all.tensors[which]);
    const std::uint64_t local = global - all.first[which];
    const auto run = static_cast<std::size_t>(std::min<std::uint64_t>(out.size() - at, all.first[which + 1] - global));
    with_format(tensor.dtype, [&]<class Format>(Format) {
      const MasterReader<Format> masters(source.stored(all.tensors[which]), source.masters(all.tensors[which]), seed,
                                         tensor.name);
      const NumberStream updates = update_stream(seed, tensor.name);
      for (std::size_t i = 0; i < run; ++i)
        out[at + i] = threshold<Format>(masters.stored(local + i), masters.master(local + i), updates.bell(local + i));
    });
    at += run;
  }
}

}  // namespace

Checked<StepSize> find_step_size(const TrainingSource& source, double change, std::uint64_t seed, Crew crew) {
  constexpr std::uint64_t sample_min = 1'000'000, sample_max = 16'000'000, piece = 1024;
  const Population all = trainable_of(source.layout());
  const std::uint64_t population = all.first.back();
  const double wanted = change * static_cast<double>(source.elements());
  if (wanted < 0.5) return StepSize{};
  const auto too_many = [&](double possible) {
    const double share = 100 * possible / static_cast<double>(source.elements());
    return Failure{make_error_code(boost::system::errc::invalid_argument), "--change",
                   fmt::format("{:.6g} % of the elements cannot change: {:.6g} % are floating-point weights other than "
                               "zero, infinities and NaN",
                               100 * change, share)};
  };
  if (wanted > static_cast<double>(population)) return too_many(static_cast<double>(population));

  const auto enough = static_cast<std::uint64_t>(std::min(1e5 / change, 1e15));
  const std::uint64_t samples = std::min(std::clamp(enough, sample_min, sample_max), population);
  const std::uint64_t pieces = (samples + piece - 1) / piece;
  std::vector<float> thresholds(static_cast<std::size_t>(samples));
  const Job sample_piece = [&](std::size_t job, unsigned) -> Checked<void> {
    const std::uint64_t from = job * piece, count = std::min(piece, samples - from);
    // Pieces spread evenly over the model; with samples == population they are the model.
    const auto gap = static_cast<std::uint64_t>(static_cast<double>(population - samples) *
                                                (static_cast<double>(job) / static_cast<double>(pieces)));
    sample(source, all, seed, from + gap,
           std::span(thresholds).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(count)));
    return {};
  };
  auto sampled = run_jobs(static_cast<std::size_t>(pieces), crew, sample_piece);
  if (!sampled) return sampled.error();

  const double share = wanted / static_cast<double>(population);
  const auto rank = std::min(static_cast<std::size_t>(share * static_cast<double>(samples)), thresholds.size() - 1);
  std::ranges::nth_element(thresholds, thresholds.begin() + static_cast<std::ptrdiff_t>(rank));
  if (!(thresholds[rank] < never)) {
    const auto changeable = std::ranges::count_if(thresholds, [](float threshold) { return threshold < never; });
    return too_many(static_cast<double>(population) * static_cast<double>(changeable) / static_cast<double>(samples));
  }
  return StepSize{thresholds[rank], samples};
}

}  // namespace deltarelay::synthetic
