"""The program behind testdata/real/h100-lm-*.pickle, worked out from those traces alone.

    python h100_lm.py forward:128:bf16 forward:256:bf16=OUT.pickle
    python h100_lm.py forward:512 step:128=OUT.pickle

Each word is one profile of a fresh model: what (forward, or forward, backward and optimizer step), context length,
precision, and the snapshot that is left. Frames name functions and their order, sizes give the rest: vocabulary 10,000,
width 2560, 32 heads of 80, 32 layers, 10,240 hidden, batch 4, each weight made on the device. What a process had run
before shows in the segments that the first empty_cache gives back. docs/fidelity.md tells how each was found.
"""

from __future__ import annotations

import contextlib
import math
import sys

import torch
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, LAYERS, HIDDEN, BATCH = 10_000, 2560, 32, 32, 10_240, 4


class Linear(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outside, inside, device="cuda"))
        deviation = math.sqrt(2 / (inside + outside))
        nn.init.trunc_normal_(self.weight, 0.0, deviation, -3 * deviation, 3 * deviation)

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("oi,...i->...o", self.weight, x)


class Embedding(nn.Module):
    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, width, device="cuda"))
        nn.init.trunc_normal_(self.weight, 0.0, 1.0, -3.0, 3.0)

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight[ids]


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, device="cuda"))

    def forward(self, x: Tensor) -> Tensor:
        kind = x.dtype
        x = x.to(torch.float32)
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        rms = torch.sqrt(norm**2 / WIDTH + 1e-5)
        normed = x / rms
        result = torch.einsum("d,...d->...d", self.weight, normed)
        return result.to(kind)


class Rotary(nn.Module):
    table: Tensor

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        indexes = torch.arange(0, width, 2, device="cuda")
        powers = 10_000.0 ** (indexes / width)
        frequencies = 1.0 / powers
        positions = torch.arange(length, device="cuda")
        angles = positions[:, None] * frequencies[None, :]
        table = torch.empty(length, width // 2, 2, device="cuda")
        table[..., 0] = torch.cos(angles)
        table[..., 1] = torch.sin(angles)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        cos = self.table[..., 0][positions].unsqueeze(1)
        sin = self.table[..., 1][positions].unsqueeze(1)
        x = x.unflatten(-1, (-1, 2))
        out = torch.zeros_like(x)
        out[..., 0] = x[..., 0] * cos - x[..., 1] * sin
        out[..., 1] = x[..., 0] * sin + x[..., 1] * cos
        return out.flatten(-2)


def softmax(x: Tensor, dim: int) -> Tensor:
    largest = torch.max(x, dim=dim, keepdim=True).values
    exponentials = torch.exp(x - largest)
    total = torch.sum(exponentials, dim=dim, keepdim=True)
    return exponentials / total


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.einsum("...qd,...kd->...qk", q, k)
    scores = scores / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = softmax(scores, -1)
    return torch.einsum("...qk,...kd->...qd", weights, v)


class Attention(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (Linear(WIDTH, WIDTH) for _ in range(4))
        self.rotary = Rotary(WIDTH // HEADS, length)

    def forward(self, x: Tensor) -> Tensor:
        # Which names live on to the end of this function decides what is freed when.
        batch, length, _ = x.shape
        whole_q, whole_k, whole_v = self.q(x), self.k(x), self.v(x)
        q, k, v = (whole.unflatten(-1, (HEADS, -1)).transpose(1, 2) for whole in (whole_q, whole_k, whole_v))
        positions = torch.arange(length, device=x.device).expand(batch, length)
        q = self.rotary(q, positions)
        k = self.rotary(k, positions)
        mask = torch.triu(torch.ones(length, length, device=x.device), diagonal=1).bool()
        mask = ~mask
        mask = mask.expand(batch, HEADS, length, length)
        out = attend(q, k, v, mask)
        out = out.transpose(1, 2).reshape(batch, length, -1)
        return self.o(out)


class SwiGLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(WIDTH, HIDDEN), Linear(HIDDEN, WIDTH), Linear(WIDTH, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.w1(x)
        value = self.w3(x)
        gate = gate * torch.sigmoid(gate)
        return self.w2(gate * value)


class Block(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.norm1, self.attention = RMSNorm(WIDTH), Attention(length)
        self.norm2, self.feed_forward = RMSNorm(WIDTH), SwiGLU()

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        y = self.attention(y)
        between = x + y
        y = self.norm2(between)
        y = self.feed_forward(y)
        return between + y


class Model(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.embedding = Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList([Block(length) for _ in range(LAYERS)])
        self.norm, self.head = RMSNorm(WIDTH), Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    largest = torch.max(logits, dim=-1, keepdim=True).values
    logits = logits - largest
    exponentials = torch.exp(logits)
    total = torch.sum(exponentials, dim=-1)
    right = logits[torch.arange(targets.shape[0]), targets]
    loss = torch.log(total) - right
    return loss.mean()


class AdamW(torch.optim.Optimizer):
    def __init__(self, parameters) -> None:  # type: ignore[no-untyped-def]
        super().__init__(parameters, {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "decay": 0.01})

    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            rate, (one, two) = group["lr"], group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if "m" not in state:
                    state["m"] = torch.zeros_like(p.data)
                    state["v"] = torch.zeros_like(p.data)
                m, v = state["m"], state["v"]
                m.mul_(one).add_(p.grad.data, alpha=1 - one)
                v.mul_(two).addcmul_(p.grad.data, p.grad.data, value=1 - two)
                root = v.sqrt() + group["eps"]
                p.data.addcdiv_(m, root, value=-rate * math.sqrt(1 - two) / (1 - one))
                p.data.mul_(1 - rate * group["decay"])


def profile(what: str, length: int, precision: str, out: str) -> None:
    model = Model(length)
    optimizer = AdamW(model.parameters())
    ids = torch.randint(0, VOCABULARY, (BATCH, length)).to("cuda")
    cast = torch.autocast("cuda", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    torch.cuda.empty_cache()
    if what == "step":
        optimizer.zero_grad()
    with cast:
        logits = model(ids)
        loss = cross_entropy(logits, ids) if what == "step" else None
    if loss is not None:
        loss.backward()
        optimizer.step()
    if out:
        torch.cuda.memory._dump_snapshot(out)
    torch.cuda.memory._record_memory_history(enabled=None)


if __name__ == "__main__":
    for word in sys.argv[1:]:
        task, _, snapshot = word.partition("=")
        what, length, *precision = task.split(":")
        profile(what, int(length), *(precision or ["fp32"]), snapshot)
