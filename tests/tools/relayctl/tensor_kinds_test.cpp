// Kinds of tensors by the names that model families use.
#include "tools/relayctl/tensor_kinds.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace deltarelay::relayctl;

TEST_SUITE("relayctl/tensor_kinds") {
  TEST_CASE("the names of the model families are sorted into kinds") {
    struct Row {
      const char* name;
      TensorKind kind;
    };
    using enum TensorKind;
    const Row rows[] = {
        {"model.embed_tokens.weight", embedding},
        {"tok_embeddings.weight", embedding},
        {"transformer.wte.weight", embedding},
        {"bert.embeddings.word_embeddings.weight", embedding},
        {"model.layers.0.self_attn.q_proj.weight", attention_q},
        {"model.layers.0.self_attn.q_proj.bias", attention_q},
        {"model.layers.0.self_attn.q_a_proj.weight", attention_q},
        {"layers.3.attention.wq.weight", attention_q},
        {"bert.encoder.layer.0.attention.self.query.weight", attention_q},
        {"model.layers.0.self_attn.k_proj.weight", attention_k},
        {"bert.encoder.layer.0.attention.self.key.weight", attention_k},
        {"layers.3.attention.wv.weight", attention_v},
        {"model.layers.0.self_attn.v_proj.weight", attention_v},
        {"model.layers.0.self_attn.o_proj.weight", attention_o},
        {"layers.3.attention.wo.weight", attention_o},
        {"h.0.attn.c_proj.weight", attention_o},
        {"bert.encoder.layer.0.attention.output.dense.weight", attention_o},
        {"h.0.attn.c_attn.weight", attention},
        {"gpt_neox.layers.0.attention.query_key_value.weight", attention},
        {"model.layers.0.self_attn.kv_a_proj_with_mqa", attention},
        {"model.layers.0.self_attn.qkv_proj.weight", attention},
        {"model.layers.0.mlp.gate_proj.weight", mlp},
        {"h.0.mlp.c_proj.weight", mlp},
        {"layers.3.feed_forward.w1.weight", mlp},
        {"bert.encoder.layer.0.intermediate.dense.weight", mlp},
        {"model.layers.9.mlp.experts.17.down_proj.weight", experts},
        {"model.layers.9.mlp.shared_experts.up_proj.weight", experts},
        {"model.layers.9.block_sparse_moe.experts.3.w2.weight", experts},
        {"model.layers.9.mlp.gate.weight", other},
        {"model.layers.9.mlp.gate.e_score_correction_bias", other},
        {"model.layers.9.mlp.shared_expert_gate.weight", other},
        {"model.layers.0.mlp.router_bias", other},
        {"model.layers.0.input_layernorm.weight", norm},
        {"model.layers.0.post_attention_layernorm.weight", norm},
        {"model.layers.0.self_attn.q_norm.weight", norm},
        {"model.norm.weight", norm},
        {"transformer.ln_f.weight", norm},
        {"bert.encoder.layer.0.attention.output.LayerNorm.weight", norm},
        {"lm_head.weight", head},
        {"output.weight", head},
        {"embed_out.weight", head},
        {"model.logit_scale", other},
        {"w", other},
        {"", other},
        {"...", other},
    };
    for (const Row& row : rows) {
      CAPTURE(row.name);
      CHECK(tensor_kind_name(tensor_kind(row.name)) == tensor_kind_name(row.kind));
    }
  }

  TEST_CASE("every kind has a name of its own") {
    std::set<std::string> names;
    for (unsigned i = 0; i < tensor_kind_count; ++i) names.emplace(tensor_kind_name(static_cast<TensorKind>(i)));
    CHECK(names.size() == tensor_kind_count);
    CHECK(tensor_kind_name(static_cast<TensorKind>(tensor_kind_count - 1)) == "other");
  }
}
