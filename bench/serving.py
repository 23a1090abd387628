"""LLM servers' KV caches on imaginary GPUs, each against a closed form of its model's shape.

    python bench/serving.py                 all, one after another: half an hour on two cores
    python bench/serving.py --only mla fp8  those whose name has one of these
    python bench/serving.py --table         also write the table of docs/fidelity.md

Engines start with made-up weights and a config alone, in one process where they can ('scripts/setup serving' gets them).
A configuration is right if the bytes of the cache are those of its blocks by the closed form, and its tokens those of its blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import serving_weights

from common import CACHE, HIGHTIDE, ROOT

FIDELITY = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- bench/serving.py -->", "<!-- end of bench/serving.py -->"
ENGINES = {
    "vLLM 0.11.0": "serving-vllm-0.11.0",
    "vLLM 0.33.0": "serving-vllm-0.33.0",
    "SGLang 0.5.5.post3": "serving-sglang-0.5.5.post3",
    "SGLang 0.5.4.post3": "serving-sglang-0.5.4.post3",
}
OLD, NEW, SGLANG, SGLANG_OLD = ENGINES

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    "hidden_size": 512, "intermediate_size": 1024, "max_position_embeddings": 131072, "num_attention_heads": 8,
    "num_hidden_layers": 2, "num_key_value_heads": 4, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "vocab_size": 32000,
}  # fmt: skip
EIGHT = {**LLAMA, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
         "num_key_value_heads": 8, "vocab_size": 128256}  # fmt: skip
QWEN2 = {**LLAMA, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
QWEN3 = {**LLAMA, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 128}
FOURTEEN = {**QWEN3, "hidden_size": 5120, "intermediate_size": 17408, "num_attention_heads": 40, "num_hidden_layers": 40,
            "num_key_value_heads": 8, "vocab_size": 151936, "max_position_embeddings": 40960}  # fmt: skip
MIXTRAL = {**LLAMA, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 4,
           "num_experts_per_tok": 2}  # fmt: skip
QWEN3_MOE = {**QWEN3, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": 8,
             "num_experts_per_tok": 2, "moe_intermediate_size": 512, "decoder_sparse_step": 1, "mlp_only_layers": [],
             "norm_topk_prob": True}  # fmt: skip
MLA = {**LLAMA, "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "num_key_value_heads": 8,
       "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
       "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 512,
       "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_group": 1, "topk_group": 1, "topk_method": "greedy",
       "norm_topk_prob": False, "routed_scaling_factor": 1.0, "scoring_func": "softmax"}  # fmt: skip
GEMMA2 = {**LLAMA, "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "attn_logit_softcapping": None,
          "final_logit_softcapping": None, "head_dim": 64, "hidden_act": "gelu_pytorch_tanh",
          "hidden_activation": "gelu_pytorch_tanh", "layer_types": ["sliding_attention", "full_attention"] * 2,
          "num_hidden_layers": 4, "query_pre_attn_scalar": 64, "sliding_window": 1024,
          "tie_word_embeddings": True}  # fmt: skip
OPT = {"architectures": ["OPTForCausalLM"], "model_type": "opt", "hidden_size": 512, "ffn_dim": 2048, "num_attention_heads": 8,
       "num_hidden_layers": 3, "max_position_embeddings": 8192, "vocab_size": 32000, "word_embed_proj_dim": 512,
       "activation_function": "relu", "do_layer_norm_before": True, "torch_dtype": "bfloat16", "bos_token_id": 2,
       "eos_token_id": 2, "pad_token_id": 1}  # fmt: skip
NEOX = {"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_size": 512, "intermediate_size": 2048,
        "num_attention_heads": 8, "num_hidden_layers": 3, "max_position_embeddings": 8192, "vocab_size": 32000,
        "hidden_act": "gelu", "rotary_pct": 0.25, "rotary_emb_base": 10000, "layer_norm_eps": 1e-5, "use_parallel_residual": True,
        "torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 0}  # fmt: skip
BAMBA = {**LLAMA, "architectures": ["BambaForCausalLM"], "model_type": "bamba", "num_hidden_layers": 4,
         "attn_layer_indices": [1, 3], "attn_rotary_emb": 64, "mamba_n_heads": 16, "mamba_d_head": 64, "mamba_n_groups": 1,
         "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256}  # fmt: skip

GPT_OSS = {**LLAMA, "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "head_dim": 64, "num_local_experts": 4,
           "num_experts_per_tok": 2, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 2,
           "num_hidden_layers": 4, "attention_bias": True, "quantization_config": {"quant_method": "mxfp4"}}  # fmt: skip
NVFP4 = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16,
                                 "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"], "ignore": ["lm_head"]}}  # fmt: skip
SEES = {**LLAMA, "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
        "vision_start_token_id": 257, "vision_end_token_id": 258, "vision_token_id": 259, "image_token_id": 260,
        "video_token_id": 261, "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]},
        "vision_config": {"model_type": "qwen2_5_vl", "depth": 2, "hidden_size": 256, "out_hidden_size": 512, "num_heads": 4,
                          "intermediate_size": 512, "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2,
                          "temporal_patch_size": 2, "hidden_act": "silu", "window_size": 112,
                          "fullatt_block_indexes": [1]}}  # fmt: skip
MARKS = ["<|endoftext|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]


def seeing() -> dict[str, str]:
    """What a model that sees needs beside its configuration: a tokenizer, here of single bytes, and how pictures are cut."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that stand for themselves, as GPT-2's do
    others = [byte for byte in range(256) if byte not in printed]
    letters = [*map(chr, printed), *(chr(256 + number) for number in range(len(others)))]
    added = {str(256 + number): {"content": mark, "special": True, "lstrip": False, "rstrip": False, "normalized": False,
                                 "single_word": False} for number, mark in enumerate(MARKS)}  # fmt: skip
    images = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor", "patch_size": 14,
              "merge_size": 2, "temporal_patch_size": 2, "min_pixels": 3136, "max_pixels": 1003520,
              "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}  # fmt: skip
    tokens = {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": added, "eos_token": MARKS[0], "pad_token": MARKS[0],
              "additional_special_tokens": MARKS[1:]}  # fmt: skip
    return {"vocab.json": json.dumps({letter: number for number, letter in enumerate(letters)}), "merges.txt": "",
            "tokenizer_config.json": json.dumps(tokens), "preprocessor_config.json": json.dumps(images)}  # fmt: skip


def quantized(method: str, **more: Any) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": method, "bits": 4, "group_size": 128, **more}}


@dataclass
class Case:
    """One start. options are arguments of vllm.LLM, of SGLang its flags."""

    name: str
    config: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    gpu: str = "a10"
    engine: str = OLD
    files: dict[str, str] = field(default_factory=dict)  # of the model, beside its configuration
    weights: str = ""  # safetensors or gguf, where the engine does not make them up
    planned: bool = False  # what `hightide plan` computes of the configuration is held against the start, too

    @property
    def kinds(self) -> int:
        """Kinds of layers, which take their blocks in turn; SGLang gives layers with windows a whole cache."""
        if self.engine in (SGLANG, SGLANG_OLD):
            return 1
        return 2 if "attn_layer_indices" in self.config else len(set(self.config.get("layer_types", ["full"])))

    @property
    def gpus(self) -> int:
        """GPUs that share each layer."""
        return int(self.options.get("tensor_parallel_size") or self.options.get("tp-size", 1))

    def state(self) -> int:
        """Bytes of the state of a sequence in a layer of Mamba 2: the last inputs of its convolution, and a matrix for each
        head."""
        c = self.config
        inner = c["mamba_n_heads"] * c["mamba_d_head"]
        convolved = (c["mamba_d_conv"] - 1) * (inner + 2 * c["mamba_n_groups"] * c["mamba_d_state"])
        return int(2 * (convolved + inner * c["mamba_d_state"]))

    def token(self) -> int:
        """Bytes that a token takes of one GPU in the layers that share a block: each a key and a value for each head it has
        there, or one vector of MLA, which each GPU has whole."""
        c, gpus = self.config, self.gpus
        layers = c["num_hidden_layers"] // self.kinds
        size = 1 if {"kv_cache_dtype", "kv-cache-dtype"} & set(self.options) else 2
        if "kv_lora_rank" in c:
            return int(layers * (c["kv_lora_rank"] + c["qk_rope_head_dim"]) * size)
        heads = c.get("num_key_value_heads", c["num_attention_heads"])
        head = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
        return int(2 * layers * max(1, heads // gpus) * head * size)

    def on_host(self) -> tuple[int, int]:
        """The least and the most that the cache on the host takes: so many blocks, or whole blocks or pages of so many
        bytes."""
        if "kv_transfer_config" in self.options:
            size = 4096 * 16 * self.token()
            return size, size
        if "kv_offloading_size" in self.options:
            size = int(self.options["kv_offloading_size"]) << 30
            return size - 16 * self.token(), size
        size = int(self.options.get("hicache-size", 0)) * 10**9
        return size - self.token(), size + self.token()

    def wrong(self, serving: dict[str, Any]) -> str:
        """What of the engine's figures is not as the closed form has it; empty: nothing."""
        if any(part in name for name in self.options for part in ("kv_transfer", "offload", "hicache-size")):
            least, most = self.on_host()
            if not least <= serving.get("kv_host_bytes", -1) <= most:
                return f"{serving.get('kv_host_bytes')} bytes of cache on the host, not {least} to {most}"
        blocks, block, tokens = (serving.get(name, 0) for name in ("kv_blocks", "block_size", "kv_tokens"))
        if self.engine in (SGLANG, SGLANG_OLD):  # a page more than it gives out, for tokens that pad a batch
            wrong = serving.get("kv_bytes") != (tokens + block) * self.token()
            return f"{serving.get('kv_bytes')} bytes for {tokens} + {block} tokens of {self.token()}" if wrong else ""
        kinds = self.kinds
        if "mamba_n_heads" in self.config:  # a block has room for a state, in sixteens of tokens
            layers = self.config["num_hidden_layers"] // kinds
            room = 16 * -(-self.state() // (16 * self.token() // layers))
            if block != room:
                return f"blocks of {block} tokens for states of {self.state()} bytes: {room} have room"
        if not blocks or serving.get("kv_bytes") != blocks * block * self.token():
            return f"{serving.get('kv_bytes')} bytes for {blocks} blocks of {block} × {self.token()}"
        held = blocks // kinds * block
        near = 2 * block if self.engine == NEW else 0  # it counts what sequences of the greatest length hold
        if kinds == 1 and not 0 <= held - tokens <= near or kinds > 1 and self.engine == OLD and tokens != held:
            return f"{tokens} tokens in {blocks} blocks of {block}"
        return ""


SPECULATION = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}
OFFLOAD = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
           "kv_connector_extra_config": {"num_cpu_blocks": 4096}}  # fmt: skip
FEW = {"max-total-tokens": 100000, "hicache-io-backend": "direct"}  # more on the host than on the GPU; no nvcc
PICTURES = {"skip_tokenizer_init": False, "limit_mm_per_prompt": {"image": 1, "video": 0}}
CASES = [
    Case("llama", LLAMA),
    Case("llama, cache of 8 bits", LLAMA, {"kv_cache_dtype": "fp8"}, "h100-sxm"),
    Case("llama, one head of keys", {**LLAMA, "num_key_value_heads": 1}),
    Case("llama, blocks of 32", LLAMA, {"block_size": 32}),
    Case("llama, no prefix caching", LLAMA, {"enable_prefix_caching": False}),
    Case("llama, LoRA", LLAMA, {"enable_lora": True, "max_loras": 2}),
    Case("llama, speculation by n-grams", LLAMA, {"speculative_config": SPECULATION}),
    Case("llama, weights in FP8", LLAMA, {"quantization": "fp8"}, "h100-sxm"),
    Case("llama, AWQ", {**LLAMA, **quantized("awq", zero_point=True, version="gemm")}, {"dtype": "half"}),
    Case("llama, GPTQ", {**LLAMA, **quantized("gptq", desc_act=False, sym=True)}, {"dtype": "half"}),
    Case("gpt-oss, MXFP4", GPT_OSS),
    Case("llama, NVFP4", {**LLAMA, **NVFP4}),
    Case("llama, bitsandbytes", LLAMA, {"quantization": "bitsandbytes"}, weights="safetensors"),
    Case("llama, GGUF", LLAMA, {"dtype": "half"}, weights="gguf"),
    Case("qwen2", QWEN2),
    Case("qwen3", QWEN3),
    Case("opt", OPT),
    Case("gpt-neox", NEOX),
    Case("mixtral", MIXTRAL),
    Case("qwen3-moe", QWEN3_MOE),
    Case("deepseek-v2, MLA", MLA, gpu="h100-sxm"),
    Case("gemma2, windows", GEMMA2, {"max_num_batched_tokens": 2048}),
    Case("bamba, Mamba and attention", BAMBA, planned=True),
    Case("llama, cache offloaded to the host", LLAMA, {"kv_transfer_config": OFFLOAD}),
    Case("qwen2.5-vl, pictures", SEES, PICTURES, files=seeing(), planned=True),
    Case("llama, 2 GPUs", LLAMA, {"tensor_parallel_size": 2}),
    Case("llama, 4 GPUs", LLAMA, {"tensor_parallel_size": 4}),
    Case("llama 8B, A100 80GB", EIGHT, gpu="a100-80g"),
    Case("qwen3 14B, A100 40GB", FOURTEEN, gpu="a100-40g"),
    Case("llama", LLAMA, engine=NEW),
    Case("qwen3-moe", QWEN3_MOE, engine=NEW),
    Case("deepseek-v2, MLA", MLA, gpu="h100-sxm", engine=NEW),
    Case("gemma2, windows", GEMMA2, {"max_num_batched_tokens": 2048}, engine=NEW),
    Case("llama, cache offloaded to the host", LLAMA, {"kv_offloading_size": 1}, engine=NEW),
    Case("qwen2.5-vl, pictures", SEES, PICTURES, engine=NEW, files=seeing(), planned=True),
    Case("gpt-oss, MXFP4", GPT_OSS, engine=NEW),
    Case("llama, NVFP4", {**LLAMA, **NVFP4}, engine=NEW),
    Case("llama 8B, A100 80GB", EIGHT, gpu="a100-80g", engine=NEW),
    Case("llama", LLAMA, engine=SGLANG),
    Case(
        "gpt-oss, MXFP4",
        {**GPT_OSS, "swiglu_limit": 7.0},
        {"disable-hybrid-swa-memory": ""},
        gpu="h100-sxm",
        engine=SGLANG,
    ),
    Case("llama, cache of 8 bits", LLAMA, {"kv-cache-dtype": "fp8_e5m2"}, engine=SGLANG),
    Case("qwen3-moe", QWEN3_MOE, engine=SGLANG),
    Case("deepseek-v2, MLA", MLA, engine=SGLANG),
    Case(
        "llama, cache offloaded to the host",
        LLAMA,
        {"enable-hierarchical-cache": "", "hicache-size": 1, **FEW},
        engine=SGLANG,
    ),
    Case("llama, 2 GPUs", LLAMA, {"tp-size": 2}, engine=SGLANG),
    Case("llama 8B, A100 80GB", EIGHT, gpu="a100-80g", engine=SGLANG),
    Case("llama", LLAMA, engine=SGLANG_OLD),
    Case("qwen3-moe", QWEN3_MOE, engine=SGLANG_OLD),
    Case("llama, cache of 8 bits", LLAMA, {"kv-cache-dtype": "fp8_e5m2"}, engine=SGLANG_OLD),
]


LOADED = {"safetensors": "bitsandbytes", "gguf": "gguf"}  # vLLM's names for it


def started(case: Case, folder: Path, python: Path) -> tuple[list[Any], dict[str, str]]:
    """The command of a start, and what it needs in its environment."""
    env = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    if case.engine in (SGLANG, SGLANG_OLD):
        toolkit = folder / "cuda"  # of which its kernels need the runtime's library
        toolkit.mkdir(exist_ok=True)
        (toolkit / "lib64").symlink_to(
            next(python.parent.parent.glob("lib/python3.*/site-packages/nvidia/cuda_runtime/lib"))
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        flags = {"model-path": folder / "model", "load-format": "dummy", "port": port, "context-length": 4096,
                 "attention-backend": "triton", "sampling-backend": "pytorch", **case.options}  # fmt: skip
        words = [word for name, value in flags.items() for word in (f"--{name}", value) if word != ""]
        more = ["--skip-tokenizer-init", "--disable-cuda-graph"]
        return [python, "-m", "sglang.launch_server", *words, *more], {**env, "CUDA_HOME": str(toolkit)}
    options = {
        "load_format": LOADED.get(case.weights, "dummy"),
        "skip_tokenizer_init": True,
        "max_model_len": 4096,
        "enforce_eager": True,
        **case.options,
    }
    script = folder / "serve.py"
    model = str(folder / "model")
    if case.weights == "gguf":
        options["hf_config_path"], model = model, f"{model}/model.gguf"
    script.write_text(f"import vllm\nif __name__ == '__main__':\n    vllm.LLM({model!r}, **{options!r})\n")
    env |= {"VLLM_NO_USAGE_STATS": "1", "VLLM_WORKER_MULTIPROC_METHOD": "fork", "VLLM_USE_FLASHINFER_SAMPLER": "0",
            "HUMMING_DISABLE_PARALLEL_BUILD": "1"}  # fmt: skip
    if case.gpus == 1:
        env["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    return [python, script], env


def start(case: Case, folder: Path) -> tuple[str, dict[str, Any], float]:
    """Start it; what is wrong (empty: nothing), the engine's figures, and seconds."""
    python = CACHE / ENGINES[case.engine] / "bin" / "python"
    if not python.exists():
        return "not installed", {}, 0.0
    (folder / "model").mkdir(exist_ok=True)
    for name, text in {"config.json": json.dumps(case.config), **case.files}.items():
        (folder / "model" / name).write_text(text)
    if case.weights:
        write_weights = {"safetensors": serving_weights.safetensors, "gguf": serving_weights.gguf}[case.weights]
        write_weights(case.config, folder / "model" / f"model.{case.weights}")
    command, env = started(case, folder, python)
    verdict = folder / "verdict.json"
    flags = ["--gpu", case.gpu, "--gpus", case.gpus, "--no-suggest", "--data-dir", folder / "data"]
    flags += [] if case.engine in (SGLANG, SGLANG_OLD) else ["--until", "ready"]
    words = [str(w) for w in (HIGHTIDE, "imagine", *flags, f"--json={verdict}", "--", *command)]
    began = time.monotonic()
    done = subprocess.run(words, env={**os.environ, **env}, cwd=folder, capture_output=True, text=True, timeout=900)
    took = time.monotonic() - began
    told = json.loads(verdict.read_text()) if verdict.exists() else {}
    if done.returncode not in (0, 6):  # 6: conditional, by a number that the host read
        return told.get("failure") or f"{told.get('verdict', 'no verdict')}, exit code {done.returncode}", {}, took
    problem = case.wrong(told["serving"]) or (
        otherwise(case, folder / "model", told["serving"]) if case.planned else ""
    )
    return problem, {**told["serving"], "conditional": done.returncode == 6}, took


def otherwise(case: Case, model: Path, serving: dict[str, Any]) -> str:
    """Where a plan of the configuration has other weights, or another cache of a token, than the engine; empty: nowhere.
    The engine has 0.8 to 2.1 MB more, ends of the allocator's blocks among them."""
    words = [HIGHTIDE, "plan", model, "--gpu", case.gpu, "--seq", "4096", "--json"]
    words += ["--utilization", serving["utilization"]]  # vLLM 0.33 takes 0.92 by itself
    plan = json.loads(subprocess.run([str(w) for w in words], capture_output=True).stdout)
    token = plan["model"]["cache_bytes_per_token"]
    if token != case.token():
        return f"plan has {token} bytes for a token"
    parts = {part["name"]: part["bytes"] for part in plan["rows"][0]["parts"]}
    computed = parts["weights"] + parts["rotary table"]
    if not 0 <= serving["weights_bytes"] - computed < 3 << 20:
        return f"plan has {computed:,} bytes of weights and rotary table, the engine {serving['weights_bytes']:,}"
    users = plan["rows"][0]["users"]
    if not users["low"] <= serving["max_concurrency"] <= users["high"]:
        return (
            f"plan has {users['low']} to {users['high']} users of {case.name}, the engine {serving['max_concurrency']}"
        )
    return ""


def row(case: Case, problem: str, serving: dict[str, Any]) -> str:
    count = case.gpus
    blocks = f"{serving['kv_blocks']:,}" if serving.get("kv_blocks") else ""
    figures = f"{blocks} | {serving['kv_tokens']:,} | {case.token():,} B" if serving else " | | "
    gpu = case.gpu if count == 1 else f"{count} × {case.gpu}"
    problem = problem or ("exact; the verdict is conditional" if serving.get("conditional") else "exact")
    return f"| {case.engine} | {case.name} | {gpu} | {figures} | {problem.splitlines()[0][:120]} |"


def write(rows: dict[str, str]) -> None:
    """Put rows into the table between the marks of the page, in the order of the cases; those of others stay."""
    page = FIDELITY.read_text()
    before, _, rest = page.partition(BEGIN)
    table, _, after = rest.partition(END)
    all_rows = {
        " | ".join(line.split(" | ")[:2]): line
        for line in table.splitlines()
        if line.startswith(tuple(f"| {engine}" for engine in ENGINES))
    } | rows
    head = [
        "| engine | model | GPU | blocks | tokens | a token, closed form | bytes and tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    ordered = [all_rows[key] for key in (f"| {c.engine} | {c.name}" for c in CASES) if key in all_rows]
    FIDELITY.write_text(before + BEGIN + "\n\n" + "\n".join(head + ordered) + "\n\n" + END + after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    wrong = 0
    for case in CASES:
        if options.only and not any(word in f"{case.engine} {case.name}" for word in options.only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            problem, serving, took = start(case, Path(folder))
        wrong += bool(problem)
        told = row(case, problem, serving)
        print(f"{took:5.0f} s  {told}", flush=True)
        if options.table:
            write({f"| {case.engine} | {case.name}": told})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
