"""Scratch of cuBLAS, cuDNN, cuSOLVER, cuFFT and PyTorch's own kernels, by operation.

Two figures each: what PyTorch's allocator held at most beyond operands and result, and what the driver says was taken
beside the allocator by the first such call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from card import Figures


def operations(torch: Any) -> dict[str, Callable[[], Any]]:
    f = torch.nn.functional

    def numbers(*shape: int, kind: Any = None, grad: bool = False) -> Any:
        return torch.rand(*shape, device="cuda", dtype=kind or torch.float32, requires_grad=grad)

    half = torch.bfloat16
    a, b = numbers(1024, 1024), numbers(1024, 1024, kind=half)
    found: dict[str, Callable[[], Any]] = {
        "cuBLAS, product in float32": lambda: a @ a,
        "cuBLAS, product in bfloat16": lambda: b @ b,
        "cuBLAS, batch of products": lambda: torch.bmm(b[None].expand(4, -1, -1), b[None].expand(4, -1, -1)),
        "cuBLASLt, linear layer with bias": lambda: f.linear(b, b, b[0]),
        "cuSOLVER, Cholesky": lambda: torch.linalg.cholesky_ex(torch.eye(512, device="cuda")),
        "cuSOLVER, LU": lambda: torch.linalg.lu_factor_ex(torch.eye(512, device="cuda")),
        "cuFFT, 1024 × 1024": lambda: torch.fft.fft2(a),
        "sum of 2^24 numbers": lambda: numbers(1 << 24).sum(),
        "sort of 2^20 numbers": lambda: torch.sort(numbers(1 << 20)),
    }
    for name, layer in {
        "3 × 3, 64 channels, 56²": (8, 64, 64, 3, 56),
        "1 × 1, 256 channels, 28²": (8, 256, 128, 1, 28),
        "7 × 7, 3 channels, 224²": (4, 3, 64, 7, 224),
    }.items():
        batch, inside, outside, window, side = layer
        for kind in (torch.float32, half):
            picture = numbers(batch, inside, side, side, kind=kind, grad=True)
            weight = numbers(outside, inside, window, window, kind=kind, grad=True)
            said = f"cuDNN, {name}, {str(kind)[6:]}"
            found[f"{said}, forward"] = lambda p=picture, w=weight: f.conv2d(p.detach(), w.detach())  # type: ignore[misc]
            found[f"{said}, forward and backward"] = (
                lambda p=picture, w=weight: torch.autograd.grad(f.conv2d(p, w).sum(), (p, w))  # type: ignore[misc]
            )
    lstm = torch.nn.LSTM(256, 256, 2).cuda()
    sequence = numbers(64, 16, 256)
    found["cuDNN, LSTM, forward and backward"] = lambda: lstm(sequence)[0].sum().backward()
    heads = numbers(2, 8, 1024, 64, kind=half)
    found["attention as PyTorch chooses it"] = lambda: f.scaled_dot_product_attention(
        heads, heads, heads, is_causal=True
    )
    return found


def measured(figures: Figures, torch: Any, name: str, work: Callable[[], Any], conditions: dict[str, object]) -> None:
    def beside() -> int:
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        return int(total - free - torch.cuda.memory_reserved())

    for call in ("first", "second"):
        torch.cuda.empty_cache()
        before, outside = torch.cuda.memory_allocated(), beside()
        torch.cuda.reset_peak_memory_stats()
        result = work()
        peak = torch.cuda.max_memory_allocated() - before
        figures.say(
            f"{name}, {call} call", peak, "bytes", "torch.cuda.max_memory_allocated less before the call", **conditions
        )
        if call == "first":
            figures.say(
                f"{name}, beside the allocator", beside() - outside, "bytes", "cuMemGetInfo less reserved", **conditions
            )
        del result


def main() -> None:
    figures = Figures(sys.argv[1])
    import torch

    conditions = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    # A backward pass in a thread of its own frees what it was given a moment earlier or later.
    torch.autograd.set_multithreading_enabled(False)
    conditions["backward"] = "in the calling thread"
    torch.zeros(1, device="cuda")
    for name, work in operations(torch).items():
        figures.part(name, lambda name=name, work=work: measured(figures, torch, name, work, conditions))  # type: ignore[misc]
    torch.backends.cudnn.benchmark = True
    for name, work in operations(torch).items():
        if name.startswith("cuDNN, 3"):
            said = f"{name}, kernels tried out"
            figures.part(said, lambda name=said, work=work: measured(figures, torch, name, work, conditions))  # type: ignore[misc]


if __name__ == "__main__":
    main()
