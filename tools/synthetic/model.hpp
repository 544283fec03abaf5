// What a synthetic language model of a given size looks like: its tensors in the order of a forward pass, and how
// their weights are spread.
//
// A decoder-only transformer with grouped-query attention and a gated MLP, named as HuggingFace names them; depth and
// width grow with the cube root of the size, as they do in practice; the vocabulary takes what the layers leave, so
// that the model has the size that was asked for, to within one vocabulary row. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/dtype.hpp"
#include "codec/layout.hpp"

namespace deltarelay::synthetic {

inline constexpr std::uint64_t model_bytes_min = 64 * 1024;
inline constexpr std::uint64_t model_bytes_max = 1ull << 44;

struct ModelTensor {
  codec::TensorSpec spec;
  float mean = 0, spread = 0;  ///< of its weights
};

struct Model {
  codec::DType dtype{};
  std::uint64_t hidden = 0, intermediate = 0, layers = 0, heads = 0, key_heads = 0, vocabulary = 0;
  std::vector<ModelTensor> tensors;
  std::uint64_t bytes = 0;  ///< of all tensors
};

/// A model of about `bytes`; `dtype` is that of its matrices (BF16, F16 or F32), norms of layers have it too; the last
/// norm, the routers' biases and the scalar are F32. REQUIRES model_bytes_min <= bytes <= model_bytes_max, trainable.
[[nodiscard]] Model design_model(std::uint64_t bytes, codec::DType dtype);

/// config.json, as a loader would want it.
[[nodiscard]] std::string config_json(const Model& model);

}  // namespace deltarelay::synthetic
