// `checkpoint step`: the next checkpoint after one optimizer step, with the statistics that small steps have.
//
// Under Adam every weight moves by about the same amount, whatever its size; at the learning rates of RL that amount is
// far below the spacing of BF16 values for most weights. So FP32 masters move a little, few stored values change, those
// mostly by one step of the bit pattern, and small weights far more often than large ones. All tensors have one
// learning rate, and steps are independent of each other (no momentum). Zeros, NaN and infinities stay as they are, bit
// for bit, as do tensors that are not BF16, F16 or F32.
//
// Masters are kept in DIR.masters, a checkpoint of its own that any reader opens; see training_source.hpp for what
// happens without. The result depends on the source and the seed, not on threads or shards.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "codec/errc.hpp"
#include "tools/synthetic/workers.hpp"

namespace deltarelay::synthetic {

struct StepOptions {
  double change = 0;  ///< share of all elements whose stored bits change, 0 to 1
  std::uint64_t seed = 0;
  std::optional<std::size_t> shards{};  ///< nothing: files as in the source
  unsigned threads = 1;
  bool keep_masters = true;
  StopFlag stop = nullptr;
};

/// What changed. Distances are between bit patterns of 16-bit formats; F32 counts only in `elements` and `changed`.
struct StepCounts {
  std::uint64_t elements = 0, changed = 0;
  std::uint64_t narrow_changed = 0;            ///< of BF16 and F16
  std::array<std::uint64_t, 4> by_distance{};  ///< of those: 1, 2, 3 to 7, more
  /// Per biased exponent of the old value as a float, of 16-bit formats: how many there are, how many changed.
  std::array<std::uint64_t, 256> exponent_elements{}, exponent_changed{};

  StepCounts& operator+=(const StepCounts& other);
};

struct StepReport {
  StepCounts counts;
  float update_size = 0;  ///< standard deviation of the updates
  std::uint64_t sampled = 0;
  bool masters_were_kept = false;  ///< false: drawn
  std::size_t shards = 0;
  std::uint64_t bytes = 0;
  std::vector<std::filesystem::path> cleared{};  ///< what a run that was killed had left
};

/// Writes `directory` and, if asked, its masters_path(). Errors: what the source refuses; base_digest_mismatch when
/// kept masters do not round to the stored values; file_changed; file_exists; invalid_argument;
/// operation_canceled; what the system refused. None of them leaves anything behind.
[[nodiscard]] codec::Checked<StepReport> step_checkpoint(const std::filesystem::path& from,
                                                         const std::filesystem::path& directory,
                                                         const StepOptions& options);

}  // namespace deltarelay::synthetic
