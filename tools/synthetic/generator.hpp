// `checkpoint make`: a new checkpoint with random weights, and the FP32 masters that it was rounded from.
//
// The same seed and size give the same bytes for every tensor, whatever the threads and the number of shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "codec/dtype.hpp"
#include "codec/errc.hpp"
#include "tools/synthetic/model.hpp"
#include "tools/synthetic/workers.hpp"

namespace deltarelay::synthetic {

struct MakeOptions {
  std::uint64_t bytes = 0;  ///< within model_bytes_min and model_bytes_max
  std::uint64_t seed = 0;
  codec::DType dtype = codec::DType::BF16;
  std::optional<std::size_t> shards{};  ///< nothing: default_shards()
  unsigned threads = 1;
  bool keep_masters = true;
  StopFlag stop = nullptr;
};

struct MakeReport {
  Model model;
  std::size_t shards = 0;
  std::uint64_t masters_bytes = 0;
  std::vector<std::filesystem::path> cleared{};  ///< what a run that was killed had left
};

/// Writes `directory` and, if asked, its masters_path(). Errors: file_exists; invalid_argument for more shards than
/// tensors; operation_canceled; what the system refused. None of them leaves anything behind.
[[nodiscard]] codec::Checked<MakeReport> make_checkpoint(const std::filesystem::path& directory,
                                                         const MakeOptions& options);

}  // namespace deltarelay::synthetic
