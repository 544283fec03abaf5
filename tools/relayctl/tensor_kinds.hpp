// Which part of a model a tensor is, told from its name: what `delta stats` sums up by.
//
// Names are those of HuggingFace, of the older GPT and BERT layouts, and of the original Llama and DeepSeek releases. A
// kind only groups rows of a report, so an unknown name is `other` and never an error. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace deltarelay::relayctl {

enum class TensorKind : std::uint8_t {
  embedding,
  attention_q,
  attention_k,
  attention_v,
  attention_o,
  attention,  ///< fused or compressed projections, which are of no single one of the four
  mlp,
  experts,
  norm,
  head,
  other,
};
inline constexpr unsigned tensor_kind_count = 11;

[[nodiscard]] TensorKind tensor_kind(std::string_view name);
/// As the enumerator is spelt; scripts rely on it.
[[nodiscard]] std::string_view tensor_kind_name(TensorKind kind) noexcept;

}  // namespace deltarelay::relayctl
