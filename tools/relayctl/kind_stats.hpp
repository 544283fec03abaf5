// What changed per kind of tensor and what its blocks cost: the rows of `delta stats`.
//
// A frame holds blocks of several kinds. Each block is charged its code and its entry (id, length, digest); the tables
// that a frame's blocks share, and the header of its record, are of no kind and counted apart, so that the rows and the
// shared bytes make exactly what is sent. Not thread-safe.
#pragma once

#include <array>
#include <boost/json/array.hpp>
#include <string>
#include <vector>

#include "codec/frame.hpp"
#include "codec/layout.hpp"
#include "tools/relayctl/change_stats.hpp"
#include "tools/relayctl/tensor_kinds.hpp"

namespace deltarelay::relayctl {

struct KindStats {
  std::uint64_t tensors = 0, dense_bytes = 0;
  ChangeStats changes;
  codec::FrameStats sent;  ///< changed blocks; codes by encoding; overhead: entries
  [[nodiscard]] std::uint64_t payload_bytes() const noexcept;
};

using KindChanges = std::array<ChangeStats, tensor_kind_count>;

class KindTable {
 public:
  explicit KindTable(const codec::Layout& layout);

  [[nodiscard]] TensorKind kind_of(codec::TensorIndex tensor) const { return kinds_[raw(tensor)]; }
  /// REQUIRES a frame of ours: one that does not parse is a mistake of the encoder (asserted).
  void add_frame(codec::Bytes payload);
  void merge(const KindChanges& changes);
  /// Of all kinds together.
  [[nodiscard]] ChangeStats changes() const;
  [[nodiscard]] std::uint64_t shared_bytes() const noexcept { return shared_bytes_; }

  /// One object per kind that has tensors, in the order of the enumeration.
  [[nodiscard]] boost::json::array json() const;
  [[nodiscard]] std::string text() const;

 private:
  std::vector<TensorKind> kinds_;  ///< by tensor
  std::array<KindStats, tensor_kind_count> stats_{};
  std::uint64_t shared_bytes_ = 0;
};

}  // namespace deltarelay::relayctl
