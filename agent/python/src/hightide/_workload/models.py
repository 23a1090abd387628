"""The models, as numbers: what each framework builds from, and what a batch for it looks like.

To add a model: a line in MODELS, and in each framework's file a function of the name that `build` gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Tuple

CLASSES = 10
PIXELS = 32  # images are square, of COLOURS channels, as those of CIFAR-10
COLOURS = 3
VOCABULARY = 30000


@dataclass(frozen=True)
class Model:
    """A model by name: `build` is the function of each framework's file that makes it."""

    build: str
    width: int = 0
    heads: int = 0
    blocks: int = 0

    @property
    def reads_text(self) -> bool:
        """Whether its inputs are tokens; else they are images."""
        return self.width > 0

    @property
    def inner(self) -> int:
        """Width of a block's feed-forward layer."""
        return 4 * self.width


MODELS: Dict[str, Model] = {
    "lenet": Model("lenet"),
    "resnet18": Model("resnet18"),
    "transformer6": Model("transformer", width=256, heads=4, blocks=6),
    "transformer6-base": Model("transformer", width=768, heads=12, blocks=6),  # as wide as BERT base
}

STAGES = (64, 128, 256, 512)  # channels of ResNet-18's four stages, of two blocks each


def batches(model: Model, seq_len: int, seed: int, channels_first: bool) -> Callable[[int], Tuple[Any, Any]]:
    """A function that draws n samples and their classes, as arrays of NumPy; of one seed always the same ones."""
    import numpy

    random = numpy.random.default_rng(seed)

    def draw(n: int) -> Tuple[Any, Any]:
        classes = random.integers(CLASSES, size=n)
        if model.reads_text:
            return random.integers(VOCABULARY, size=(n, seq_len)), classes
        shape = (n, COLOURS, PIXELS, PIXELS) if channels_first else (n, PIXELS, PIXELS, COLOURS)
        return random.random(shape, dtype=numpy.float32), classes

    return draw
