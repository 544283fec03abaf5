#include "tools/synthetic/training_source.hpp"

#include <string>
#include <system_error>
#include <utility>

#include "tools/synthetic/staged_output.hpp"

namespace deltarelay::synthetic {
namespace {

using codec::Checked;
using codec::CheckpointMap;
using codec::Failure;

constexpr std::uint32_t no_index = 0xffffffffu;

Checked<CheckpointMap> open_map(const std::filesystem::path& path) {
  auto checkpoint = codec::Checkpoint::open(path);
  if (!checkpoint) return checkpoint.error();
  return CheckpointMap::open(std::move(*checkpoint));
}

}  // namespace

Checked<TrainingSource> TrainingSource::open(const std::filesystem::path& path) {
  auto map = open_map(path);
  if (!map) return map.error();
  TrainingSource source(std::move(*map));
  for (const codec::TensorSpec& tensor : source.layout().tensors())
    source.elements_ += tensor.bytes / codec::element_width(tensor.dtype);
  const std::filesystem::path beside = masters_path(path);
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored))
    if (auto bound = source.bind_masters(beside); !bound) return bound.error();
  return source;
}

Checked<void> TrainingSource::bind_masters(const std::filesystem::path& path) {
  auto masters = open_map(path);
  if (!masters) return masters.error();
  const auto tensors = layout().tensors();
  master_of_.assign(tensors.size(), no_index);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!has_masters(tensors[i].dtype)) continue;
    const std::size_t at = masters->layout().find(tensors[i].name);
    const auto all = masters->layout().tensors();
    if (at == all.size() || all[at].dtype != codec::DType::F32 || all[at].shape != tensors[i].shape)
      return Failure{codec::errc::tensor_size_mismatch, path.string(),
                     "it has no FP32 master of the right shape for " + codec::display_name(tensors[i].name)};
    master_of_[i] = static_cast<std::uint32_t>(at);
  }
  masters_ = std::move(*masters);
  return {};
}

codec::Bytes TrainingSource::masters(codec::TensorIndex tensor) const {
  if (!masters_ || master_of_.at(raw(tensor)) == no_index) return {};
  return masters_->tensor(codec::TensorIndex{master_of_[raw(tensor)]});
}

Checked<void> TrainingSource::check_unchanged() const {
  if (auto same = map_.check_unchanged(); !same) return same;
  return masters_ ? masters_->check_unchanged() : Checked<void>{};
}

}  // namespace deltarelay::synthetic
