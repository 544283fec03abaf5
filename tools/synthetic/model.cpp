#include "tools/synthetic/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string_view>
#include <utility>

#include "tools/synthetic/float_format.hpp"

namespace deltarelay::synthetic {
namespace {

using codec::DType;

constexpr std::uint64_t head_width = 16;

void add(Model& model, std::string name, DType dtype, std::vector<std::uint64_t> shape, float mean, float spread) {
  const auto bytes = codec::tensor_bytes(dtype, shape);
  assert(bytes.has_value());
  model.tensors.push_back({{std::move(name), dtype, std::move(shape), *bytes}, mean, spread});
  model.bytes += *bytes;
}

void add_layer(Model& model, std::uint64_t layer) {
  const std::uint64_t h = model.hidden, kv = model.key_heads * head_width, wide = model.intermediate;
  const DType dtype = model.dtype;
  // Depth tells in the spread: later layers end wider, and what writes into the residual stream begins narrower.
  const float depth = static_cast<float>(layer) / static_cast<float>(model.layers);
  const float spread = 0.018F * (1.0F + 0.5F * depth);
  const auto put = [&](std::string_view part, std::vector<std::uint64_t> shape, float mean, float sigma) {
    add(model, fmt::format("model.layers.{}.{}", layer, part), dtype, std::move(shape), mean, sigma);
  };
  put("input_layernorm.weight", {h}, 1.0F, 0.08F);
  put("self_attn.q_proj.weight", {h, h}, 0, spread * 1.1F);
  put("self_attn.q_proj.bias", {h}, 0, 0.01F);
  put("self_attn.k_proj.weight", {kv, h}, 0, spread * 1.3F);
  put("self_attn.v_proj.weight", {kv, h}, 0, spread * 0.7F);
  put("self_attn.o_proj.weight", {h, h}, 0, spread * 0.6F);
  put("post_attention_layernorm.weight", {h}, 1.0F, 0.08F);
  put("mlp.gate_proj.weight", {wide, h}, 0, spread);
  put("mlp.up_proj.weight", {wide, h}, 0, spread * 0.9F);
  put("mlp.down_proj.weight", {h, wide}, 0, spread * 0.7F);
}

std::uint64_t rounded_to(double value, std::uint64_t step) {
  return std::max(step, static_cast<std::uint64_t>(std::llround(value / static_cast<double>(step))) * step);
}

void set_width(Model& model, std::uint64_t hidden) {
  model.hidden = hidden;
  model.intermediate = rounded_to(static_cast<double>(hidden) * 8 / 3, 16);
  model.heads = hidden / head_width;
  model.key_heads = std::max<std::uint64_t>(model.heads / 4, 1);
}

/// Parameters of one layer, to choose how many fit.
std::uint64_t layer_parameters(const Model& model) {
  const std::uint64_t h = model.hidden, kv = model.key_heads * head_width;
  return 2 * h * h + 2 * kv * h + 3 * h * model.intermediate + 3 * h;
}

}  // namespace

Model design_model(std::uint64_t bytes, DType dtype) {
  assert(bytes >= model_bytes_min && bytes <= model_bytes_max && trainable(dtype));
  Model model;
  model.dtype = dtype;
  const std::uint64_t width = codec::element_width(dtype), parameters = bytes / width;
  // A layer has about 10.5 h^2 parameters and there are about h / 64 of them in 85 % of the model.
  const double ideal = std::cbrt(static_cast<double>(parameters) * 0.85 * 64 / 10.5);
  set_width(model, rounded_to(ideal, ideal < 256 ? 16 : 64));
  // The smallest models have one layer, which must leave room for a vocabulary.
  while (model.hidden > 16 && layer_parameters(model) > parameters * 85 / 100) set_width(model, model.hidden - 16);
  const std::uint64_t layer = layer_parameters(model);
  model.layers = std::max<std::uint64_t>(parameters * 85 / 100 / layer, 1);

  const std::uint64_t h = model.hidden, small_bytes = 4 * h + 4 + 8 * model.layers * 4;
  const std::uint64_t taken = model.layers * layer * width + small_bytes;
  model.vocabulary = std::max<std::uint64_t>(bytes > taken ? (bytes - taken) / (2 * h * width) : 0, 16);

  add(model, "model.embed_tokens.weight", dtype, {model.vocabulary, h}, 0, 0.022F);
  for (std::uint64_t i = 0; i < model.layers; ++i) {
    add_layer(model, i);
    // A routing bias: a few F32 numbers that change on every step.
    add(model, fmt::format("model.layers.{}.mlp.router_bias", i), DType::F32, {8}, 0, 0.01F);
  }
  add(model, "model.norm.weight", DType::F32, {h}, 1.0F, 0.05F);
  add(model, "model.logit_scale", DType::F32, {}, 1.0F, 0.01F);
  add(model, "model.prompt_prefix.weight", dtype, {0, h}, 0, 0);  // a feature that is off: no bytes at all
  add(model, "lm_head.weight", dtype, {model.vocabulary, h}, 0, 0.02F);
  return model;
}

std::string config_json(const Model& model) {
  const char* torch = model.dtype == DType::BF16 ? "bfloat16" : model.dtype == DType::F16 ? "float16" : "float32";
  return fmt::format(R"({{
  "architectures": ["SyntheticForCausalLM"],
  "hidden_size": {},
  "intermediate_size": {},
  "model_type": "synthetic",
  "num_attention_heads": {},
  "num_hidden_layers": {},
  "num_key_value_heads": {},
  "tie_word_embeddings": false,
  "torch_dtype": "{}",
  "vocab_size": {}
}}
)",
                     model.hidden, model.intermediate, model.heads, model.layers, model.key_heads, torch,
                     model.vocabulary);
}

}  // namespace deltarelay::synthetic
