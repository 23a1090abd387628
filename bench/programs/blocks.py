"""Small trainings whose models have few blocks, so that every set of them can be checkpointed.

    blocks.py NAME BATCH [FILE]

With FILE, which hightide imagine --steps 0 runs, one process goes through all sets as the lever would checkpoint them,
and FILE gets the peak of each: a line of bytes and names.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from typing import Any

import torch
from torch import nn


class MLP(nn.Module):
    """A block that keeps `inner` numbers a token, and computes in proportion to them."""

    def __init__(self, width: int, inner: int, drop: float = 0.0) -> None:
        super().__init__()
        self.mix = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))
        self.drop = nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.mix(x))


class Attention(nn.Module):
    """A transformer's block; `scores` keeps the whole matrix of them."""

    def __init__(self, width: int, scores: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out, self.mlp = nn.Linear(width, 3 * width), nn.Linear(width, width), MLP(width, 4 * width)
        self.scores = scores

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (8, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        if self.scores:
            y = torch.softmax(q @ k.transpose(-2, -1), -1) @ v
        else:
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.mlp(x + self.out(y.transpose(1, 2).flatten(2)))


class Bottleneck(nn.Module):
    """Convolutions with running statistics."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.mix = nn.Sequential(nn.Conv2d(channels, inner, 1), nn.BatchNorm2d(inner), nn.ReLU(),
                                 nn.Conv2d(inner, inner, 3, padding=1), nn.BatchNorm2d(inner), nn.ReLU(),
                                 nn.Conv2d(inner, channels, 1))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mix(x)


class Gated(nn.Module):
    """Few products, and much that is kept: gates of several kinds."""

    def __init__(self, width: int, gates: int) -> None:
        super().__init__()
        self.into, self.gates = nn.Linear(width, width), gates
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.into(x)
        for _ in range(self.gates):
            y = torch.sigmoid(y) * torch.tanh(self.norm(y))
        return x + y


class Net(nn.Module):
    """Blocks between a first and a last layer."""

    def __init__(self, first: nn.Module, blocks: list[nn.Module], last: nn.Module) -> None:
        super().__init__()
        self.first, self.blocks, self.last = first, nn.ModuleList(blocks), last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def tokens(*blocks: nn.Module, classes: int = 64) -> tuple[Net, tuple[int, ...]]:
    return Net(nn.Linear(64, 256), list(blocks), nn.Linear(256, classes)), (128, 64)


def images(*blocks: nn.Module) -> tuple[Net, tuple[int, ...]]:
    last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return Net(nn.Conv2d(3, 64, 3, padding=1), list(blocks), last), (3, 32, 32)


MODELS = {
    "alike": lambda: tokens(*(MLP(256, 1024) for _ in range(4))),
    "growing": lambda: tokens(*(MLP(256, 512 * n) for n in (1, 2, 3, 4))),
    "shrinking": lambda: tokens(*(MLP(256, 512 * n) for n in (4, 3, 2, 1))),
    "one-wide": lambda: tokens(*(MLP(256, n) for n in (256, 4096, 512, 512))),
    "wide-second": lambda: tokens(*(MLP(256, n) for n in (256, 4096, 512))),
    "dropout": lambda: tokens(*(MLP(256, 768, 0.1) for _ in range(4))),
    "attention": lambda: tokens(*(Attention(256) for _ in range(4))),
    "scores": lambda: tokens(*(Attention(256, scores=n % 2 == 0) for n in range(4))),
    "gated": lambda: tokens(*(Gated(256, n) for n in (1, 4, 2, 3))),
    "wide-last": lambda: tokens(*(MLP(256, 1024) for _ in range(3)), classes=4096),
    "convolutions": lambda: images(*(Bottleneck(64, n) for n in (32, 64, 128, 64))),
    "five": lambda: tokens(*(MLP(256, n) for n in (1024, 256, 2048, 512, 1536))),
    "kinds": lambda: tokens(MLP(256, 2048), MLP(256, 512), Gated(256, 6), Gated(256, 2)),
}


# Of five blocks and more, for which one process goes through all sets.
MODELS |= {
    "alike-8": lambda: tokens(*(MLP(256, 1024) for _ in range(8))),
    "growing-7": lambda: tokens(*(MLP(256, 512 * n) for n in range(1, 8))),
    "shrinking-7": lambda: tokens(*(MLP(256, 512 * n) for n in range(7, 0, -1))),
    "one-wide-8": lambda: tokens(*(MLP(256, n) for n in (256, 512, 4096, 512, 256, 512, 1024, 512))),
    "mixed-9": lambda: tokens(*(MLP(256, n) for n in (1024, 256, 2048, 512, 1536, 768, 3072, 384, 640))),
    "dropout-6": lambda: tokens(*(MLP(256, 768, 0.1) for _ in range(6))),
    "attention-6": lambda: tokens(*(Attention(256) for _ in range(6))),
    "scores-6": lambda: tokens(*(Attention(256, scores=n % 2 == 0) for n in range(6))),
    "gated-6": lambda: tokens(*(Gated(256, n) for n in (1, 4, 2, 3, 6, 1))),
    "convolutions-6": lambda: images(*(Bottleneck(64, n) for n in (32, 64, 128, 64, 96, 32))),
    "kinds-8": lambda: tokens(*(MLP(256, 2048), MLP(256, 512), Gated(256, 6), Attention(256)),
                              *(Gated(256, 2), MLP(256, 1024), Attention(256, scores=True), MLP(256, 256))),
    "kinds-12": lambda: tokens(*(MLP(256, 256 * (n % 5 + 1)) if n % 3 else Gated(256, n % 4 + 1) for n in range(12))),
}  # fmt: skip


def train(model: nn.Module, optimizer: torch.optim.Optimizer, shape: tuple[int, ...], steps: int) -> None:
    for _ in range(steps):
        x = torch.randn(int(sys.argv[2]), *shape, device="cuda")
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def every_set(model: Net, optimizer: torch.optim.Optimizer, shape: tuple[int, ...], file: str) -> None:
    """Checkpoint one set after the other. The allocator begins each with nothing that it keeps."""
    from hightide_agent.levers import checkpoint  # of the imagined run
    from torch.utils.checkpoint import checkpoint as library

    chosen: Any = weakref.WeakSet()
    for kind in {type(block) for block in model.blocks}:
        checkpoint._wrap(torch, library, kind, chosen)
    names = range(len(model.blocks))
    with open(file, "w") as out:
        for names_of in itertools.chain.from_iterable(itertools.combinations(names, n) for n in range(len(names) + 1)):
            chosen.clear()
            chosen.update(model.blocks[n] for n in names_of)
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            train(model, optimizer, shape, 2)
            print(torch.cuda.max_memory_allocated(), *(f"blocks.{n}" for n in names_of), file=out)


def main() -> None:
    model, shape = MODELS[sys.argv[1]]()
    model = model.to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    if sys.argv[3:]:
        every_set(model, optimizer, shape, sys.argv[3])
    else:
        train(model, optimizer, shape, 4)


if __name__ == "__main__":
    main()
