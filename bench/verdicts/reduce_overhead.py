"""torch.compile records a graph, into whose pool its inputs are copied: input, its copy and the result.

gpu: 1 GiB
truth: fits, 3 * 160 MiB
"""

import torch


@torch.compile(mode="reduce-overhead")
def chain(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * 2 + x.cos()).exp()


with torch.no_grad():
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        y = chain(torch.randn(40 << 20, device="cuda"))
        del y
