// A synthetic checkpoint and one training step of it, mapped, for benchmarks: what a root has before it when it
// publishes.
//
// Made in a temporary directory by the trainer (tools/synthetic), so that the changes are those of training and not
// noise; every page is touched before anything is timed. Pairs stay mapped when their workshop is gone, so a program
// that measures for long leaves nothing behind when it is interrupted. Single-threaded; what is made may be read by
// several. What cannot be made is a std::runtime_error that says why.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "codec/checkpoint.hpp"
#include "codec/frame.hpp"

namespace deltarelay::bench {

/// Larger than the caches, small enough for a laptop.
inline constexpr std::uint64_t model_bytes = 128ull << 20;

/// Neighbouring blocks, as a refit encodes them together: 16 MiB, or 64 blocks. What one iteration of a benchmark works
/// on: short enough to fall between two interruptions, and taken in turns, so that each finds the caches cold.
struct Batch {
  std::vector<codec::BlockInput> blocks;
  std::vector<codec::EncodedFrame> frames;  ///< from base to next
  std::vector<codec::EncodedFrame> back;    ///< from next to base
  std::uint64_t bytes = 0;
  std::vector<std::size_t> offsets;  ///< of each block in memory that holds the checkpoint back to back
};

class TrainedPair {
 public:
  [[nodiscard]] const codec::Layout& layout() const { return base_.layout(); }
  [[nodiscard]] const codec::CheckpointMap& base() const { return base_; }
  [[nodiscard]] const codec::CheckpointMap& next() const { return next_; }
  [[nodiscard]] std::uint64_t bytes() const { return layout().total_bytes(); }
  /// In the order of the image.
  [[nodiscard]] const std::vector<Batch>& batches() const { return batches_; }
  [[nodiscard]] double changed_percent() const;
  [[nodiscard]] double payload_percent() const;

 private:
  friend class Workshop;
  TrainedPair(codec::CheckpointMap base, codec::CheckpointMap next);
  codec::CheckpointMap base_, next_;
  std::vector<Batch> batches_;
};

struct WorkshopOptions {
  std::uint64_t bytes = model_bytes;
  std::uint64_t seed = 1;  ///< of the weights; the updates have the next one
  unsigned threads = 2;    ///< to make them with
};

/// A checkpoint and the place where steps of it are made; its files are gone with it.
class Workshop {
 public:
  explicit Workshop(const WorkshopOptions& options);
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop();

  /// The pair whose step changes this share of the elements, with its frames.
  [[nodiscard]] TrainedPair pair(double change);

 private:
  WorkshopOptions options_;
  std::filesystem::path path_;
  unsigned steps_ = 0;
};

}  // namespace deltarelay::bench
