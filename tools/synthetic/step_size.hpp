// How large an update must be so that the share of stored values that was asked for changes.
//
// Element i moves by size * u(i), with u(i) known beforehand; so it has one size from which on its stored value
// changes: the distance from its master to the rounding boundary on that side, divided by |u(i)|. The size wanted is a
// quantile of these over a sample of the elements. One pass, where trying sizes by bisection takes twenty; the answer
// is the same.
#pragma once

#include <cstdint>

#include "codec/errc.hpp"
#include "tools/synthetic/training_source.hpp"
#include "tools/synthetic/workers.hpp"

namespace deltarelay::synthetic {

struct StepSize {
  float size = 0;             ///< standard deviation of the update of each weight
  std::uint64_t sampled = 0;  ///< elements looked at
};

/// `change` is a share of all elements, 0 to 1. Sampled so that about 100 000 of the elements seen change (an error of
/// 0.3 %), within 1 to 16 million elements, or all that there are. Memory: four bytes per sampled element.
/// Errors: invalid_argument when even the largest update does not change so many; operation_canceled.
[[nodiscard]] codec::Checked<StepSize> find_step_size(const TrainingSource& source, double change, std::uint64_t seed,
                                                      Crew crew);

/// The updates of a tensor in a step with this seed.
[[nodiscard]] inline NumberStream update_stream(std::uint64_t seed, std::string_view tensor) {
  return {seed, "update", tensor};
}

}  // namespace deltarelay::synthetic
