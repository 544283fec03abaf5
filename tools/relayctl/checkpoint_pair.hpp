// Two checkpoints of one layout, side by side: what `delta encode` and `delta stats` read.
//
// Blocks are copied out under the store's guard, so a file that is cut short meanwhile ends the command with its name
// and not with a signal. Readers may be called by several threads; the pair outlives them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "codec/checkpoint.hpp"
#include "codec/refit_encoder.hpp"

namespace deltarelay::relayctl {

struct Context;

class CheckpointPair {
 public:
  /// Null when it said why not: a checkpoint that cannot be read, or tensors whose names, dtypes or shapes differ
  /// (`exit_code` is 3 then, and the tensors are named).
  [[nodiscard]] static std::unique_ptr<CheckpointPair> open(const Context& context, const std::filesystem::path& base,
                                                            const std::filesystem::path& next,
                                                            std::uint32_t block_bytes, int& exit_code);

  [[nodiscard]] const codec::Layout& layout() const noexcept { return base_.layout(); }
  [[nodiscard]] const codec::Checkpoint& base() const noexcept { return base_.checkpoint(); }
  [[nodiscard]] const codec::Checkpoint& next() const noexcept { return next_.checkpoint(); }
  [[nodiscard]] codec::BlockReader base_reader() const;
  [[nodiscard]] codec::BlockReader next_reader() const;
  /// Fails with file_changed, naming the file, when either is no longer what was opened.
  [[nodiscard]] codec::Checked<void> check_unchanged() const;

 private:
  CheckpointPair(codec::CheckpointMap base, codec::CheckpointMap next)
      : base_(std::move(base)), next_(std::move(next)) {}
  codec::CheckpointMap base_, next_;
};

}  // namespace deltarelay::relayctl
