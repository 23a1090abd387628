"""Writes truth.json: what transformers says of models' weights and caches, for families_test.go.

    ~/.cache/hightide/torch-2.15.0/bin/python internal/modelfile/testdata/truth.py

Models are built on the meta device, so that no weights take memory. Sizes of published models where those are known by
heart, else small ones that tell their parts apart.
"""

import json
import os
import sys

import torch
import transformers

SMALL = dict(
    vocab_size=1000,
    hidden_size=96,
    intermediate_size=160,
    num_hidden_layers=7,
    num_attention_heads=6,
    num_key_value_heads=2,
    max_position_embeddings=512,
)
GQA = dict(SMALL, head_dim=16)
MOE = dict(GQA, moe_intermediate_size=48, num_experts_per_tok=2)
LLAMA3_8B = dict(
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    max_position_embeddings=8192,
)
OLD = dict(vocab_size=1000, n_embd=96, n_layer=5, n_head=6, n_positions=256)
MLA = dict(
    SMALL,
    num_key_value_heads=6,
    q_lora_rank=32,
    kv_lora_rank=24,
    qk_rope_head_dim=8,
    qk_nope_head_dim=16,
    v_head_dim=12,
    moe_intermediate_size=48,
    n_routed_experts=8,
    n_shared_experts=2,
    num_experts_per_tok=2,
    first_k_dense_replace=2,
    n_group=2,
    topk_group=1,
)
CASES = [
    ("llama", LLAMA3_8B),
    ("llama", dict(GQA, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    ("mistral", dict(GQA, sliding_window=64)),
    ("ministral", dict(GQA, sliding_window=64)),
    ("granite", SMALL),
    ("smollm3", dict(SMALL, pad_token_id=0, bos_token_id=1, eos_token_id=2)),
    ("phi3", dict(SMALL, pad_token_id=0, sliding_window=64)),
    ("qwen2", dict(SMALL, use_sliding_window=True, sliding_window=64, max_window_layers=3)),
    ("qwen3", GQA),
    ("gemma", dict(GQA, head_dim=32)),
    ("gemma2", dict(GQA, head_dim=32, sliding_window=64)),
    ("gemma3_text", dict(GQA, head_dim=32, sliding_window=64)),
    ("olmo2", SMALL),
    ("olmo3", dict(SMALL, sliding_window=64)),
    ("cohere", SMALL),
    ("cohere", dict(SMALL, use_qk_norm=True)),
    ("cohere2", dict(SMALL, sliding_window=64)),
    ("glm4", dict(GQA, pad_token_id=0)),
    ("stablelm", SMALL),
    ("stablelm", dict(SMALL, qk_layernorm=True)),
    ("starcoder2", SMALL),
    ("gpt_neox", dict(SMALL, num_key_value_heads=6)),
    ("gpt2", OLD),
    ("gpt_bigcode", OLD),
    ("gpt_bigcode", dict(OLD, multi_query=False)),
    ("opt", dict(vocab_size=1000, hidden_size=96, ffn_dim=160, num_hidden_layers=5, num_attention_heads=6)),
    (
        "opt",
        dict(
            vocab_size=1000,
            hidden_size=96,
            ffn_dim=160,
            num_hidden_layers=5,
            num_attention_heads=6,
            word_embed_proj_dim=48,
            do_layer_norm_before=False,
        ),
    ),
    ("bloom", dict(vocab_size=1000, hidden_size=96, n_layer=5, n_head=6)),
    ("phi", dict(SMALL, num_key_value_heads=6)),
    ("phi", dict(SMALL, num_key_value_heads=6, qk_layernorm=True, tie_word_embeddings=True)),
    ("falcon", dict(vocab_size=1000, hidden_size=96, num_hidden_layers=5, num_attention_heads=6)),
    (
        "falcon",
        dict(
            vocab_size=1000,
            hidden_size=96,
            num_hidden_layers=5,
            num_attention_heads=6,
            num_kv_heads=2,
            new_decoder_architecture=True,
        ),
    ),
    ("mixtral", dict(SMALL, num_local_experts=4, num_experts_per_tok=2)),
    ("qwen2_moe", dict(SMALL, moe_intermediate_size=48, shared_expert_intermediate_size=64, num_experts=6, mlp_only_layers=[1])),
    ("qwen3_moe", dict(MOE, num_experts=6, decoder_sparse_step=2)),
    ("olmoe", dict(SMALL, num_experts=6, num_experts_per_tok=2)),
    ("gpt_oss", dict(GQA, num_local_experts=4, num_experts_per_tok=2, sliding_window=64)),
    ("deepseek_v2", dict(MLA, topk_method="group_limited_greedy")),
    ("deepseek_v2", dict(MLA, q_lora_rank=None)),
    ("deepseek_v2", dict(MLA, mlp_bias=True)),
    ("deepseek_v3", MLA),
    ("glm4_moe", dict(MOE, n_routed_experts=6, n_shared_experts=1, first_k_dense_replace=2, pad_token_id=0)),
    ("granitemoe", dict(SMALL, num_local_experts=4, num_experts_per_tok=2)),
    ("seed_oss", dict(GQA, pad_token_id=0)),
    ("exaone4", dict(GQA, sliding_window=64)),
    ("ernie4_5", GQA),
    ("helium", GQA),
    ("arcee", GQA),
    ("arcee", dict(GQA, attention_bias=True, mlp_bias=True)),
    ("nemotron", GQA),
    ("hunyuan_v1_dense", GQA),
    ("codegen", dict(OLD, rotary_dim=8)),
    ("gptj", dict(OLD, rotary_dim=8)),
    ("gptj", dict(OLD, rotary_dim=8, n_inner=50, tie_word_embeddings=True)),
    (
        "opt",
        dict(
            vocab_size=1000,
            hidden_size=96,
            ffn_dim=160,
            num_hidden_layers=5,
            num_attention_heads=6,
            layer_norm_elementwise_affine=False,
            tie_word_embeddings=False,
        ),
    ),
]
UNWEIGHED = [  # of these only the cache follows from the configuration
    ("qwen3_next", dict(MOE, num_experts=4, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8,
                        linear_value_head_dim=8)),
    ("jamba", dict(SMALL, num_experts=2, mamba_d_state=8, num_hidden_layers=16)),
    ("lfm2", dict(SMALL, layer_types=["conv", "full_attention"] * 3 + ["conv"])),
    ("falcon_mamba", dict(vocab_size=1000, hidden_size=96, num_hidden_layers=5)),
    ("mamba2", dict(vocab_size=1000, hidden_size=96, num_hidden_layers=5, num_heads=12, head_dim=16)),
    ("bamba", dict(SMALL, attn_layer_indices=[2, 5], mamba_n_heads=12, mamba_d_head=16)),
]


def truth(kind, fields, weighed):
    """Parameters of a model, and the numbers that its cache holds after prompts of two lengths."""
    config = transformers.CONFIG_MAPPING[kind](**fields)
    config.dtype = "bfloat16"
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    case = {"kind": kind, "config": json.loads(config.to_json_string(use_diff=False))}
    if weighed:
        kept = [b for n, b in model.named_buffers() if n in model.state_dict()]  # what a file has besides
        case["adapters"] = sum(
            sum(m.weight.shape)
            for n, m in model.named_modules()
            if type(m).__name__ in ("Linear", "Conv1D") and (".layers." in n or ".h." in n)
        )
        case["bytes"] = sum(t.numel() * t.element_size() for t in [*model.parameters(), *kept])
    cache = {}
    if config.hidden_size <= 96 and not kind.startswith(("falcon_mamba", "mamba2", "codegen", "gptj", "bamba", "jamba")):
        for tokens in (32, 200):
            cache[str(tokens)] = cached(config, tokens)
    case["cached_numbers"] = cache
    return case


def cached(config, tokens):
    """Numbers in the key and value tensors that a real forward pass leaves."""
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        out = model(torch.randint(3, 900, (1, tokens)), use_cache=True)
    total = 0
    for layer in out.past_key_values.layers:
        for name in ("keys", "values"):
            tensor = getattr(layer, name, None)
            total += tensor.numel() if tensor is not None else 0
    return total


def main():
    cases, failed = [], []
    for weighed, group in ((True, CASES), (False, UNWEIGHED)):
        for kind, fields in group:
            try:
                cases.append(truth(kind, fields, weighed))
            except Exception as error:  # say which, and go on
                failed.append(f"{kind}: {type(error).__name__}: {str(error)[:300]}")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "truth.json")
    with open(path, "w", encoding="utf-8") as file:
        head = {"transformers": transformers.__version__, "torch": torch.__version__}
        file.write(json.dumps({**head, "cases": cases}, indent=1) + "\n")
    print(f"{len(cases)} cases", *failed, sep="\n", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
