// What the trainer hands to the root: a checkpoint directory, checked against the image before the first frame leaves.
//
// Read with pread, not mapped: a trainer that truncates a file under us is then an error and no signal. Immutable after
// open(); read_block() may be called by several threads at once.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "codec/checkpoint.hpp"
#include "codec/input_file.hpp"
#include "codec/payloads.hpp"
#include "codec/refit_encoder.hpp"

namespace deltarelay::relay {

class Export {
 public:
  /// Errors: those of Checkpoint::open(); malformed_payload with one sentence a tensor when names, dtypes or shapes are
  /// not `wanted`'s.
  [[nodiscard]] static codec::Checked<std::shared_ptr<const Export>> open(const std::filesystem::path& directory,
                                                                          const codec::Layout& wanted);

  [[nodiscard]] const codec::Checkpoint& checkpoint() const noexcept { return checkpoint_; }
  [[nodiscard]] codec::Result<codec::Bytes> read_block(codec::BlockId id, codec::MutableBytes scratch) const;
  /// Small files beside the shards, whole; names sorted.
  [[nodiscard]] const std::vector<codec::FilePayload>& companions() const noexcept { return companions_; }
  /// file_changed when a shard or the index is no longer what it was when opened.
  [[nodiscard]] codec::Checked<void> check_unchanged() const;

 private:
  explicit Export(codec::Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}
  codec::Checkpoint checkpoint_;
  std::vector<codec::InputFile> shards_;
  std::vector<codec::FilePayload> companions_;
};

}  // namespace deltarelay::relay
