"""Writes truth.json: what transformers says of models' weights and caches, for families_test.go.

    ~/.cache/hightide/torch-2.15.0/bin/python internal/modelfile/testdata/truth.py

Models are built on the meta device, so that no weights take memory. Sizes of published models where those are known by
heart, else small ones that tell their parts apart.
"""

import dataclasses
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
    (
        "qwen2_moe",
        dict(SMALL, moe_intermediate_size=48, shared_expert_intermediate_size=64, num_experts=6, mlp_only_layers=[1]),
    ),
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
    ("dots1", dict(MOE, n_routed_experts=6, n_shared_experts=1, first_k_dense_replace=2)),
    (
        "ernie4_5_moe",
        dict(MOE, moe_k=2, moe_num_experts=6, moe_num_shared_experts=2, moe_layer_interval=2, use_bias=True),
    ),
    ("ernie4_5_moe", dict(MOE, moe_k=2, moe_num_experts=6, moe_num_shared_experts=1, tie_word_embeddings=False)),
    ("hunyuan_v1_moe", dict(GQA, num_experts=4, moe_topk=2)),
    ("hunyuan_v1_moe", dict(GQA, num_experts=4, moe_topk=[2] * 7, attention_bias=True)),
    ("llama4_text", dict(GQA, num_local_experts=4, intermediate_size_mlp=200, interleave_moe_layer_step=2)),
    ("granitemoeshared", dict(SMALL, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=40)),
    ("glm4_moe_lite", dict(MLA, n_group=1)),
    (
        "glm4_moe_lite",
        dict(
            MLA, n_group=1, q_lora_rank=None, attention_bias=True, mlp_layer_types=["sparse", "dense"] * 3 + ["sparse"]
        ),
    ),
    ("youtu", {k: v for k, v in MLA.items() if "expert" not in k and k != "first_k_dense_replace"}),
    ("solar_open", dict(MOE, n_routed_experts=6, n_shared_experts=1, pad_token_id=0)),
    ("flex_olmo", dict(SMALL, num_experts=6, pad_token_id=0)),
    ("exaone_moe", dict(MOE, num_experts=6, num_shared_experts=2, sliding_window=64)),
    ("apertus", GQA),
    ("minimax_m2", dict(GQA, num_local_experts=4, num_experts_per_tok=2)),
    ("phimoe", dict(SMALL, num_local_experts=4, num_experts_per_tok=2)),
    ("phimoe", dict(SMALL, num_local_experts=4, num_experts_per_tok=2, attention_bias=True, lm_head_bias=True)),
    ("olmo", dict(SMALL, pad_token_id=0)),
    ("glm", dict(GQA, pad_token_id=0)),
    ("ministral3", GQA),
    ("cwm", GQA),
    (
        "gpt_neo",
        dict(vocab_size=1000, hidden_size=96, num_layers=4, num_heads=6, attention_types=[[["global", "local"], 2]]),
    ),
    ("mpt", dict(vocab_size=1000, d_model=96, n_heads=6, n_layers=5)),
    ("xglm", dict(vocab_size=1000, d_model=96, ffn_dim=160, num_layers=5, attention_heads=6)),
    ("biogpt", dict(SMALL, num_key_value_heads=6)),
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
PART = {k: v for k, v in SMALL.items() if k != "max_position_embeddings"}
EYE = dict(
    hidden_size=48, intermediate_size=84, num_hidden_layers=2, num_attention_heads=4, image_size=56, patch_size=14
)
QWEN_EYE = dict(depth=3, hidden_size=48, intermediate_size=84, num_heads=4, out_hidden_size=96)
FLAT = dict(SMALL, tie_word_embeddings=True)
QWEN25_VL_7B = dict(
    vocab_size=152064,
    hidden_size=3584,
    intermediate_size=18944,
    num_hidden_layers=28,
    num_attention_heads=28,
    num_key_value_heads=4,
    max_position_embeddings=128000,
    tie_word_embeddings=False,
    vision_config=dict(depth=32, hidden_size=1280, intermediate_size=3420, num_heads=16, out_hidden_size=3584),
)
SEEING = [  # models for images as well: fields of the parts that are left out are usual
    ("qwen2_5_vl", QWEN25_VL_7B),
    ("qwen2_5_vl", dict(text_config=PART, vision_config=QWEN_EYE)),
    ("qwen2_5_vl", dict(FLAT, vision_config=QWEN_EYE)),
    (
        "qwen2_5_vl",
        dict(text_config=dict(num_hidden_layers=2, tie_word_embeddings=True), vision_config=dict(out_hidden_size=8192)),
    ),
    (
        "qwen2_vl",
        dict(text_config=PART, vision_config=dict(depth=2, embed_dim=48, num_heads=4, hidden_size=96, mlp_ratio=3)),
    ),
    ("qwen2_vl", dict(FLAT, vision_config=dict(hidden_size=96))),
    (
        "qwen3_vl",
        dict(text_config=dict(PART, head_dim=16), vision_config=dict(QWEN_EYE, deepstack_visual_indexes=[0, 2])),
    ),
    (
        "qwen3_vl",
        dict(text_config=dict(num_hidden_layers=2), vision_config=dict(out_hidden_size=4096), tie_word_embeddings=True),
    ),
    (
        "qwen3_vl_moe",
        dict(
            text_config=dict(PART, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48),
            vision_config=QWEN_EYE,
        ),
    ),
    ("gemma3", dict(text_config=dict(num_hidden_layers=2), vision_config=dict(EYE, vision_use_head=False))),
    ("gemma3", dict(text_config=dict(PART, head_dim=32), vision_config=EYE)),
    (
        "llava",
        dict(
            text_config=dict(model_type="llama", num_hidden_layers=2),
            vision_config=dict(EYE, model_type="clip_vision_model"),
        ),
    ),
    (
        "llava",
        dict(
            text_config=dict(PART, model_type="qwen2"),
            vision_config=dict(EYE, model_type="siglip_vision_model", vision_use_head=False),
            vision_feature_layer=[-2, -1],
        ),
    ),
    (
        "paligemma",
        dict(
            text_config=dict(PART, model_type="gemma"),
            vision_config=dict(EYE, model_type="siglip_vision_model"),
            projection_dim=96,
        ),
    ),
    (
        "llava",
        dict(
            text_config=dict(PART, model_type="mistral", head_dim=16),
            vision_config=dict(EYE, model_type="pixtral"),
            vision_feature_layer=-1,
        ),
    ),
    (
        "mistral3",
        dict(
            text_config=dict(PART, model_type="mistral", head_dim=16),
            vision_config=dict(EYE, model_type="pixtral"),
            tie_word_embeddings=False,
        ),
    ),
    (
        "mistral3",
        dict(
            text_config=dict(PART, model_type="ministral3", head_dim=16),
            vision_config=dict(EYE, model_type="pixtral"),
            tie_word_embeddings=True,
            multimodal_projector_bias=True,
            spatial_merge_size=3,
        ),
    ),
    (
        "llama4",
        dict(
            text_config=dict(PART, num_local_experts=4, intermediate_size_mlp=200, head_dim=16),
            vision_config=dict(
                EYE, intermediate_size=192, vision_output_dim=40, projector_input_dim=30, projector_output_dim=40
            ),
        ),
    ),
    ("internvl", dict(text_config=dict(PART, model_type="qwen2"), vision_config=EYE)),
    (
        "internvl",
        dict(
            text_config=dict(PART, model_type="qwen3", head_dim=16),
            vision_config=dict(
                EYE,
                image_size=[56, 56],
                patch_size=[14, 14],
                attention_bias=True,
                use_qk_norm=True,
                norm_type="rms_norm",
                use_mean_pooling=False,
            ),
            tie_word_embeddings=False,
        ),
    ),
    ("glm4v", dict(text_config=PART, vision_config=dict(QWEN_EYE, image_size=56))),
    (
        "glm4v_moe",
        dict(
            text_config=dict(PART, n_routed_experts=6, moe_intermediate_size=48, num_experts_per_tok=2, head_dim=16),
            vision_config=dict(QWEN_EYE, image_size=56, attention_bias=True),
            tie_word_embeddings=False,
        ),
    ),
    ("idefics3", dict(text_config=dict(PART, model_type="llama"), vision_config=EYE)),
    ("smolvlm", dict(text_config=dict(PART, model_type="llama"), vision_config=EYE, scale_factor=4)),
]
PARTS = """llama mistral gemma gemma2 gemma3_text qwen2 qwen3 qwen2_vl_text qwen2_5_vl_text qwen3_vl_text qwen3_vl_moe_text
    qwen2_vl_vision qwen2_5_vl_vision qwen3_vl_vision siglip_vision_model clip_vision_model idefics3_vision
    internvl_vision glm4v_vision glm4v_text glm4v_moe_text pixtral llama4_text llama4_vision_model""".split()
READ = """vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim
    max_position_embeddings sliding_window use_sliding_window max_window_layers depth embed_dim in_channels patch_size temporal_patch_size
    spatial_merge_size out_hidden_size mlp_ratio num_position_embeddings deepstack_visual_indexes image_size num_channels
    vision_use_head num_experts num_experts_per_tok moe_intermediate_size
    n_routed_experts n_shared_experts first_k_dense_replace
    intermediate_size_mlp interleave_moe_layer_step vision_output_dim projector_input_dim projector_output_dim""".split()
BY_HEADS = dict(mamba_n_heads=12, mamba_d_head=16, mamba_d_state=8)
DELTA = dict(linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8)
NEMOTRON = dict(
    GQA,
    mamba_num_heads=12,
    mamba_head_dim=16,
    ssm_state_size=8,
    n_groups=2,
    n_routed_experts=4,
    moe_intermediate_size=48,
    moe_shared_expert_intermediate_size=40,
)
STATES = [  # layers that keep a state
    ("bamba", dict(SMALL, **BY_HEADS, attn_layer_indices=[2, 5], mamba_n_groups=2)),
    (
        "bamba",
        dict(
            SMALL,
            attn_layer_indices=[1],
            mamba_n_heads=12,
            mamba_proj_bias=True,
            mamba_conv_bias=False,
            mlp_bias=True,
            attention_bias=True,
            tie_word_embeddings=True,
        ),
    ),
    (
        "granitemoehybrid",
        dict(
            SMALL,
            **BY_HEADS,
            layer_types=["mamba", "attention"] * 3 + ["mamba"],
            num_local_experts=4,
            num_experts_per_tok=2,
            shared_intermediate_size=40,
        ),
    ),
    (
        "granitemoehybrid",
        dict(
            SMALL,
            **BY_HEADS,
            layer_types=["mamba"] * 6 + ["attention"],
            num_local_experts=0,
            num_experts_per_tok=0,
            shared_intermediate_size=40,
        ),
    ),
    ("falcon_h1", dict(SMALL, **BY_HEADS, mamba_d_ssm=192)),
    ("falcon_h1", dict(SMALL, **BY_HEADS, mamba_d_ssm=None, mamba_rms_norm=True, projectors_bias=True)),
    ("jamba", dict(SMALL, num_experts=2, mamba_d_state=8, num_hidden_layers=16)),
    ("lfm2", dict(SMALL, layer_types=["conv", "full_attention"] * 3 + ["conv"])),
    (
        "lfm2",
        dict(SMALL, layer_types=["conv"] * 6 + ["full_attention"], block_auto_adjust_ff_dim=False, conv_bias=True),
    ),
    ("lfm2_moe", dict(MOE, num_experts=4, layer_types=["conv", "full_attention"] * 3 + ["conv"])),
    (
        "lfm2_moe",
        dict(
            MOE,
            num_experts=4,
            use_expert_bias=False,
            num_dense_layers=1,
            conv_bias=True,
            layer_types=["conv"] * 6 + ["full_attention"],
        ),
    ),
    ("nemotron_h", dict(NEMOTRON, hybrid_override_pattern="MEM*-M*E")),
    ("nemotron_h", dict(NEMOTRON, hybrid_override_pattern="M-M*", mlp_bias=True, use_bias=True)),
    ("nemotron_h", dict(NEMOTRON, layers_block_type=["linear_attention", "moe", "full_attention"], moe_latent_size=24)),
    ("mamba", dict(vocab_size=1000, hidden_size=96, num_hidden_layers=5)),
    ("falcon_mamba", dict(vocab_size=1000, hidden_size=96, num_hidden_layers=5, use_bias=True)),
    ("mamba2", dict(vocab_size=1000, hidden_size=96, num_hidden_layers=5, num_heads=12, head_dim=16)),
    ("qwen3_next", dict(MOE, **DELTA, num_experts=4, shared_expert_intermediate_size=40)),
    ("qwen3_next", dict(MOE, **DELTA, num_experts=4, shared_expert_intermediate_size=40, mlp_only_layers=[1])),
    ("qwen3_5_text", dict(GQA, **DELTA)),
    ("qwen3_5_moe_text", dict(MOE, **DELTA, num_experts=4, shared_expert_intermediate_size=40)),
]
UNWEIGHED: list = [  # of these only the cache follows from the configuration
]


def size(model):
    """Bytes of the parameters, and of the buffers that a file has besides."""
    kept = [b for n, b in model.named_buffers() if n in model.state_dict()]
    return sum(t.numel() * t.element_size() for t in [*model.parameters(), *kept])


def truth(kind, fields, weighed):
    """Parameters of a model, and the numbers that its cache holds after prompts of two lengths."""
    config = transformers.CONFIG_MAPPING[kind](**fields)
    config.dtype = "bfloat16"
    sees = "vision_config" in fields
    make = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = make.from_config(config, dtype=torch.bfloat16)
    # as files have it: transformers leaves out what is usual in the parts of a configuration
    case = {"kind": kind, "config": json.loads(config.to_json_string(use_diff=False))}
    if sees:
        case["config"] = json.loads(json.dumps({"model_type": kind, "dtype": "bfloat16", **fields}))
        case["bytes"] = size(model)
        return {**case, "cached_numbers": {}}
    if weighed:
        case["adapters"] = sum(
            sum(m.weight.shape)
            for n, m in model.named_modules()
            if type(m).__name__ in ("Linear", "Conv1D") and (".layers." in n or ".h." in n)
        )
        case["bytes"] = size(model)
    cache = {}
    if config.hidden_size <= 96 and not kind.startswith(("falcon_mamba", "mamba", "codegen", "gptj", "bamba", "jamba")):
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


def usual():
    """What parts of configurations have where they do not say it, by the kind of the part."""
    found = {}
    for kind in PARTS:
        known = transformers.CONFIG_MAPPING[kind].__dataclass_fields__
        found[kind] = {}
        for name in READ:
            if name in known and known[name].default not in (None, dataclasses.MISSING):
                found[kind][name] = known[name].default
    return found


def main():
    cases, failed = [], []
    for weighed, group in ((True, CASES + STATES + SEEING), (False, UNWEIGHED)):
        for kind, fields in group:
            try:
                cases.append(truth(kind, fields, weighed))
            except Exception as error:  # say which, and go on
                failed.append(f"{kind}: {type(error).__name__}: {str(error)[:300]}")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "truth.json")
    with open(path, "w", encoding="utf-8") as file:
        head = {"transformers": transformers.__version__, "torch": torch.__version__}
        file.write(json.dumps({**head, "cases": cases}, indent=1) + "\n")
    with open(os.path.join(os.path.dirname(path), "..", "usual.json"), "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in usual().items()) + "\n}\n")
    print(f"{len(cases)} cases", *failed, sep="\n", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
