"""Writes imagined.json: what PyTorch's own allocator holds at the peak of steps, for calibrated_test.go.

    make binary
    VIRTUAL_ENV=~/.cache/hightide/torch-2.15.0 python internal/plan/testdata/imagined.py

Each model is built by hightide fit on an imaginary GPU that is larger than any, and run with batches of 1 and 3.
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HIGHTIDE = os.path.join(HERE, "..", "..", "..", "bin", "hightide")
CONFIGS = {
    "llama-1b": dict(
        model_type="llama", vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
        num_attention_heads=32, num_key_value_heads=8, head_dim=64, tie_word_embeddings=True,
        max_position_embeddings=131072,
    ),
    "llama-8b": dict(
        model_type="llama", vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072,
    ),
    "qwen2-0.5b": dict(
        model_type="qwen2", vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
        num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True, max_position_embeddings=32768,
    ),
    "gpt2": dict(
        model_type="gpt2", vocab_size=50257, n_embd=768, n_layer=12, n_head=12, n_positions=1024, attn_pdrop=0.0,
        embd_pdrop=0.0, resid_pdrop=0.0,
    ),
    "gpt-neox-1.4b": dict(
        model_type="gpt_neox", vocab_size=50304, hidden_size=2048, intermediate_size=8192, num_hidden_layers=24,
        num_attention_heads=16, rotary_pct=0.25, max_position_embeddings=2048,
    ),
    "qwen3-moe": dict(
        model_type="qwen3_moe", vocab_size=151936, hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768,
        num_experts=32, num_experts_per_tok=8, num_hidden_layers=12, num_attention_heads=32, num_key_value_heads=4,
        head_dim=128, max_position_embeddings=4096,
    ),
    "phi3-mini": dict(
        model_type="phi3", vocab_size=32064, hidden_size=3072, intermediate_size=8192, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=32, max_position_embeddings=4096, pad_token_id=32000,
    ),
    "starcoder2-3b": dict(
        model_type="starcoder2", vocab_size=49152, hidden_size=3072, intermediate_size=12288, num_hidden_layers=30,
        num_attention_heads=24, num_key_value_heads=2, max_position_embeddings=16384, residual_dropout=0.0,
        embedding_dropout=0.0,
    ),
}
PLAIN = ["--train", "--optimizer", "adamw"]
CASES = [  # the use, the type of the configuration, flags of fit
    ({"for": "infer"}, "bfloat16", ["--inference", "--dtype", "bf16"]),
    ({"for": "full", "dtype": "bf16"}, "bfloat16", [*PLAIN, "--dtype", "bf16", "--checkpointing"]),
    ({"for": "full", "dtype": "bf16", "no_checkpointing": True}, "bfloat16", [*PLAIN, "--dtype", "bf16"]),
    ({"for": "full"}, "float32", [*PLAIN, "--amp", "bf16", "--checkpointing"]),
    ({"for": "full", "no_checkpointing": True}, "float32", [*PLAIN, "--amp", "bf16"]),
]
GPU = '[[gpu]]\nslug = "large"\nlike = "h200"\nmemory = "1000 GiB"\n'


def trials(folder, config, flags, seq):
    """Bytes that the allocator held at the peak, by batch; and what was run."""
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    command = [HIGHTIDE, "fit", "-q", "--gpu", "large", "--catalogue", os.path.join(folder, "gpus.toml"), "--model", path]
    command += [*flags, "--seq-len", str(seq), "--most", "3", "--start", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr[-300:])
    said = json.loads(done.stdout)
    return {t["batch"]: t["peak_allocated_bytes"] for t in said["trials"]}, said["model"]["versions"]


def main():
    cases, versions, failed = [], {}, 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "gpus.toml"), "w", encoding="utf-8") as file:
            file.write(GPU)
        for name, config in CONFIGS.items():
            for use, dtype, flags in CASES:
                if name == "llama-8b" and dtype == "float32":
                    continue  # takes more host memory than a small machine has
                seq = min(2048, config.get("n_positions", 2048))
                try:
                    peaks, ran = trials(folder, {**config, "dtype": dtype}, flags, seq)
                except RuntimeError as error:
                    print(name, use, error, file=sys.stderr)
                    failed += 1
                    continue
                versions = ran or versions
                cases += [
                    {"model": name, "use": {**use, "seq": seq, "batch": n}, "allocated_bytes": peak}
                    for n, peak in sorted(peaks.items())
                ]
                print(name, use, peaks, file=sys.stderr)
    with open(os.path.join(HERE, "imagined.json"), "w", encoding="utf-8") as file:
        rows = ",\n".join(" " + json.dumps(c) for c in cases)
        file.write('{"versions": %s,\n"configs": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(versions), json.dumps(CONFIGS), rows))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
