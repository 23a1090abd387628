"""Weights of a llama, all zero, for engines that load a quantised model from a file alone: safetensors and GGUF.

What is zero takes no room on a disk that knows holes. The header is as each format's own documents have it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ALIGNMENT = 32  # of GGUF's tensors
F32, Q8_0 = 0, 8  # GGML's types; of the second 32 numbers take 34 bytes
TEXT, NUMBER = 8, 4  # GGUF's types of values: a string, a whole number of 32 bits


def tensors(config: dict[str, Any]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Each tensor's name as transformers has it, as GGUF has it, and its shape."""
    hidden, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", "token_embd.weight", (words, hidden)
    for layer in range(config["num_hidden_layers"]):
        for name, short, shape in (
            ("input_layernorm", "attn_norm", (hidden,)),
            ("self_attn.q_proj", "attn_q", (hidden, hidden)),
            ("self_attn.k_proj", "attn_k", (keys, hidden)),
            ("self_attn.v_proj", "attn_v", (keys, hidden)),
            ("self_attn.o_proj", "attn_output", (hidden, hidden)),
            ("post_attention_layernorm", "ffn_norm", (hidden,)),
            ("mlp.gate_proj", "ffn_gate", (inner, hidden)),
            ("mlp.up_proj", "ffn_up", (inner, hidden)),
            ("mlp.down_proj", "ffn_down", (hidden, inner)),
        ):
            yield f"model.layers.{layer}.{name}.weight", f"blk.{layer}.{short}.weight", shape
    yield "model.norm.weight", "output_norm.weight", (hidden,)
    yield "lm_head.weight", "output.weight", (words, hidden)


def numbers(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def safetensors(config: dict[str, Any], path: Path) -> None:
    """The model in bfloat16."""
    header, end = {}, 0
    for name, _, shape in tensors(config):
        size = 2 * numbers(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def word(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def gguf(config: dict[str, Any], path: Path) -> None:
    """The model with its matrices in Q8_0."""
    values = {
        "block_count": config["num_hidden_layers"], "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"], "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"], "attention.head_count_kv": config["num_key_value_heads"],
    }  # fmt: skip
    of_model = word("general.architecture") + struct.pack("<I", TEXT) + word("llama")
    of_model += b"".join(word(f"llama.{name}") + struct.pack("<II", NUMBER, value) for name, value in values.items())
    listed, end, count = b"", 0, 0
    for _, name, shape in tensors(config):
        kind, size = (F32, 4 * numbers(shape)) if len(shape) == 1 else (Q8_0, numbers(shape) // 32 * 34)
        listed += word(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
        count += 1
    header = b"GGUF" + struct.pack("<IQQ", 3, count, len(values) + 1) + of_model + listed
    with path.open("wb") as file:
        file.write(header)
        file.truncate(-(-len(header) // ALIGNMENT) * ALIGNMENT + end)
