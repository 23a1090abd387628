"""What a cell asks for, and what a framework's file answers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
FILE_DTYPES = [*DTYPES, "int8", "int4"]  # words for the names of files, which say what they hold


@dataclass(frozen=True)
class Options:
    """How to build the model and how to run a step."""

    framework: str
    model: str
    batch: int = 32
    train: bool = True
    device: str = "cpu"
    """cpu or cuda"""
    dtype: str = "fp32"
    """fp32, bf16 or fp16: of weights and activations; of a file what it was made for, also int8 and int4"""
    seq_len: int = 128
    steps: int = 10
    warmup: int = 2
    seed: int = 0
    runtime: str = ""
    """what runs a file, which `model` then names; its batch is 0 where the file says it"""


@dataclass(frozen=True)
class Built:
    """A model that is ready."""

    step: Callable[[int], object]
    """step(n) trains with, or infers, one batch of n samples, and returns when that is done"""
    parameters: Optional[int]
    """how many numbers are trained; None: not known, as of a step that the user wrote"""


class Unavailable(Exception):
    """This cannot run here: the framework, the device or the type is not there. The text says which."""


class Unknown(Exception):
    """No such model. The text, or hint, says what to do."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint
