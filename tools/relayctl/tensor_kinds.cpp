#include "tools/relayctl/tensor_kinds.hpp"

#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <vector>

namespace deltarelay::relayctl {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view norm_words[] = {"ln", "ln_1", "ln_2", "ln_f", "ln_q", "ln_k"};
constexpr std::string_view head_words[] = {"lm_head", "embed_out", "classifier", "score", "value_head", "v_head"};
constexpr std::string_view embedding_words[] = {"wte", "wpe"};
constexpr std::string_view q_words[] = {"q_proj", "q_a_proj", "q_b_proj", "wq", "wq_a", "wq_b", "query", "to_q", "q"};
constexpr std::string_view k_words[] = {"k_proj", "wk", "key", "to_k", "k"};
constexpr std::string_view v_words[] = {"v_proj", "wv", "value", "to_v", "v"};
constexpr std::string_view o_words[] = {"o_proj", "wo", "out_proj", "c_proj", "dense", "to_out", "o"};
constexpr std::string_view mlp_words[] = {"gate_proj", "up_proj", "down_proj", "gate_up_proj", "w1",          "w2",
                                          "w3",        "fc1",     "fc2",       "c_fc",         "intermediate"};

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("./", at), name.size());
    out.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool any_is(Words parts, Words words) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return std::ranges::count(words, part) > 0; });
}

bool any_has(Words parts, std::string_view text) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return part.find(text) != std::string_view::npos; });
}

}  // namespace

TensorKind tensor_kind(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::vector<std::string_view> parts = parts_of(lower);
  // From the most telling word to the least: q_norm is a norm though it stands in the attention.
  if (any_has(parts, "norm") || any_is(parts, norm_words)) return TensorKind::norm;
  // `output` is a head at the top of the original Llama, and a part of the attention in BERT.
  if (any_is(parts, head_words) || parts.front() == "output") return TensorKind::head;
  if (any_has(parts, "embed") || any_is(parts, embedding_words)) return TensorKind::embedding;
  // Routers decide between experts and are none; `gate` alone is one, gate_proj is half of an MLP.
  constexpr std::string_view router_words[] = {"gate", "shared_expert_gate"};
  if (any_has(parts, "router") || any_is(parts, router_words)) return TensorKind::other;
  if (any_has(parts, "expert")) return TensorKind::experts;
  const bool mlp = any_has(parts, "mlp") || any_has(parts, "ffn") || any_has(parts, "feed_forward");
  if (!mlp && (any_has(parts, "attn") || any_has(parts, "attention"))) {
    if (any_is(parts, q_words)) return TensorKind::attention_q;
    if (any_is(parts, k_words)) return TensorKind::attention_k;
    if (any_is(parts, v_words)) return TensorKind::attention_v;
    if (any_is(parts, o_words)) return TensorKind::attention_o;
    return TensorKind::attention;
  }
  return mlp || any_is(parts, mlp_words) ? TensorKind::mlp : TensorKind::other;
}

std::string_view tensor_kind_name(TensorKind kind) noexcept {
  switch (kind) {
    case TensorKind::embedding:
      return "embedding";
    case TensorKind::attention_q:
      return "attention_q";
    case TensorKind::attention_k:
      return "attention_k";
    case TensorKind::attention_v:
      return "attention_v";
    case TensorKind::attention_o:
      return "attention_o";
    case TensorKind::attention:
      return "attention";
    case TensorKind::mlp:
      return "mlp";
    case TensorKind::experts:
      return "experts";
    case TensorKind::norm:
      return "norm";
    case TensorKind::head:
      return "head";
    case TensorKind::other:
      break;
  }
  return "other";
}

}  // namespace deltarelay::relayctl
