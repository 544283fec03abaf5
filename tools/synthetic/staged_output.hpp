// A checkpoint directory, and its master weights beside it, that appear whole or not at all.
//
// Everything is written into a hidden directory next to the target, `.NAME.partial-XXXXXX`, and renamed into place at
// the end, so that no reader ever opens half a checkpoint and a failure leaves nothing behind. Whoever writes holds a
// lock on that directory: one that nobody holds was left by a process that was killed, and the next output of the same
// name removes it. Not synced to disk: synthetic data can be made again. One owner, one thread.
#pragma once

#include <filesystem>
#include <vector>

#include "codec/errc.hpp"

namespace deltarelay::synthetic {

/// `DIR.masters`, where the FP32 masters of the checkpoint DIR are kept.
[[nodiscard]] std::filesystem::path masters_path(const std::filesystem::path& directory);

class StagedOutput {
 public:
  /// Refuses (file_exists) a target or a masters directory that is there and not empty, or is no directory.
  [[nodiscard]] static codec::Checked<StagedOutput> create(const std::filesystem::path& target, bool with_masters);
  StagedOutput(StagedOutput&& other) noexcept;
  StagedOutput& operator=(StagedOutput&&) = delete;
  ~StagedOutput();

  [[nodiscard]] std::filesystem::path checkpoint() const { return staging_ / "checkpoint"; }
  [[nodiscard]] std::filesystem::path masters() const { return staging_ / "masters"; }
  /// What killed processes had left of outputs of this name, and create() removed.
  [[nodiscard]] const std::vector<std::filesystem::path>& cleared() const noexcept { return cleared_; }
  /// Puts both in their places; after a refusal neither is there.
  [[nodiscard]] codec::Checked<void> commit();

 private:
  StagedOutput(std::filesystem::path target, bool with_masters);
  [[nodiscard]] codec::Checked<void> make_staging();

  std::filesystem::path target_, staging_;
  std::vector<std::filesystem::path> cleared_;
  int lock_ = -1;  ///< descriptor of staging_
  bool with_masters_;
};

}  // namespace deltarelay::synthetic
