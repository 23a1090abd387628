"""What a trial is made of, as `hightide fit` writes it on the worker's command line (one JSON text)."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Optional


@dataclass(frozen=True)
class Options:
    """How to build the model and how to run a step; the zero values are MemoryMark's set-up."""

    model: str = "bert"
    """bert, gpt2, resnet, a torchvision or transformers name, a config file, or module:function"""
    size: str = ""
    """preset of a model type, such as 8b of llama"""
    device: str = "cuda"
    """cuda or cpu"""
    imagined: bool = False
    """The device computes nothing: values do not matter, weights are left as they are."""
    dtype: str = "fp32"
    """fp32, tf32, bf16 or fp16: of weights and activations"""
    amp: str = ""
    """bf16 or fp16 under autocast, with weights in dtype; empty: no autocast"""
    optimizer: str = "none"
    """none, sgd, adam, adamw or adafactor"""
    train: bool = False
    """Training mode (dropout, batch statistics) rather than eval mode; gradients flow in both."""
    inference: bool = False
    """No gradients; a language model fills its KV cache up to seq_len"""
    seq_len: int = 128
    image_size: int = 224
    checkpointing: bool = False
    compile: bool = False
    limit_bytes: Optional[int] = None
    """cpu only: what the process may use; None: what the machine has available"""

    @classmethod
    def parse(cls, text: str) -> Options:
        """Read the JSON text; unknown keys are an error, since a setting ignored is a wrong answer."""
        given = json.loads(text)
        known = {f.name for f in fields(cls)}
        strange = sorted(set(given) - known)
        if strange:
            raise ValueError(f"options that this worker does not know: {', '.join(strange)}")
        return cls(**given)
