"""The same with inputs that do not fit three times; twice they would.

gpu: 1 GiB
truth: out of memory
"""

import torch


@torch.compile(mode="reduce-overhead")
def chain(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * 2 + x.cos()).exp()


with torch.no_grad():
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        y = chain(torch.randn(75 << 20, device="cuda"))
        del y
