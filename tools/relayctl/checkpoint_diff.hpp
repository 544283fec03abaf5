// Compares two checkpoints bit by bit, tensor by tensor, whatever the shard files; and the small files beside them.
//
// Nothing is read as a number: NaN payloads and signed zeros differ when their bits do. Mapped and compared block by
// block on a few threads; memory is one mask per thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "codec/checkpoint.hpp"
#include "codec/errc.hpp"

namespace deltarelay::relayctl {

enum class Difference : std::uint8_t { only_in_a, only_in_b, declared_otherwise, content };

/// One tensor that is not the same in both.
struct TensorDifference {
  std::string name;
  Difference kind{};
  std::string detail;  ///< declared_otherwise: both declarations
  // content:
  std::uint64_t first_byte = 0;  ///< within the tensor
  std::uint64_t changed_elements = 0, elements = 0;
};

/// A companion (config.json, …) that is not the same in both.
struct FileDifference {
  std::string name;
  Difference kind{};
  std::uint64_t first_byte = 0;  ///< content: of the file; its end when one is longer
};

struct CheckpointDiff {
  std::uint64_t tensors = 0;  ///< compared: in both, declared alike
  std::uint64_t bytes = 0, elements = 0, changed_elements = 0;
  std::vector<TensorDifference> differing;  ///< by name
  std::vector<FileDifference> files;        ///< by name
  [[nodiscard]] bool same() const noexcept { return differing.empty() && files.empty(); }
};

struct DiffOptions {
  unsigned threads = 1;
  bool tensors_only = false;  ///< leave the companions alone
};

/// BF16 [4096,1024]: dtype and shape, as messages show them.
[[nodiscard]] std::string declaration_text(const codec::TensorSpec& tensor);

/// Errors: what the codec refuses about either; file_changed.
[[nodiscard]] codec::Checked<CheckpointDiff> diff_checkpoints(const std::filesystem::path& a,
                                                              const std::filesystem::path& b,
                                                              const DiffOptions& options);

}  // namespace deltarelay::relayctl
