"""What the driver keeps for CUDA graphs: bytes by node, by kind of node, and by graph.

Graphs of N nodes are captured on tensors that are there, so the allocator's pool does not grow. A figure is what the
driver says is in use after the first replay less before the capture, less what the allocator reserved meanwhile."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

from card import Figures

SOURCE = "cuMemGetInfo: in use after the first replay less before the capture, less reserved by PyTorch meanwhile"
NODES = (1, 100, 1000, 4000)


def beside(torch: Any) -> int:
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return int(total - free - torch.cuda.memory_reserved())


def captured(torch: Any, work: Any, nodes: int) -> tuple[Any, int]:
    graph = torch.cuda.CUDAGraph()
    before = beside(torch)
    with torch.cuda.graph(graph):
        for _ in range(nodes):
            work()
    graph.replay()
    return graph, beside(torch) - before


def kinds(torch: Any) -> dict[str, Any]:
    small, other = torch.zeros(1024, device="cuda"), torch.zeros(1024, device="cuda")
    left, right, out = (torch.zeros(256, 256, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    runtime = ctypes.CDLL(None)

    def memset() -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        code = runtime.cudaMemsetAsync(ctypes.c_void_p(small.data_ptr()), 0, ctypes.c_size_t(4096), stream)
        if code:
            raise OSError(f"cudaMemsetAsync answered {code}")

    ways = {
        "kernel": lambda: small.add_(1),
        "copy": lambda: other.copy_(small),
        "product": lambda: torch.mm(left, right, out=out),
    }
    return {**ways, "memset": memset} if hasattr(runtime, "cudaMemsetAsync") else ways


def by_kind(figures: Figures, torch: Any, kind: str, work: Any) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # what is taken once is there before the first figure
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    captured(torch, work, 1)
    for nodes in NODES:
        gc.collect()
        graph, taken = captured(torch, work, nodes)
        figures.say(f"graph of {nodes} nodes, {kind}", taken, "bytes", SOURCE, torch=torch.__version__)
        before = beside(torch)
        del graph
        gc.collect()
        given = before - beside(torch)
        figures.say(
            f"graph of {nodes} nodes, {kind}, given back", given, "bytes", "cuMemGetInfo", torch=torch.__version__
        )


def many(figures: Figures, torch: Any, work: Any) -> None:
    """Graphs of one size that all stay, as a server holds one for each size of its batch."""
    held, first = [], beside(torch)
    for number in range(1, 33):
        held.append(captured(torch, work, 300)[0])
        if number in (1, 8, 32):
            taken = beside(torch) - first
            figures.say(f"{number} graphs of 300 nodes", taken, "bytes", SOURCE, torch=torch.__version__, kind="kernel")


def main() -> None:
    figures = Figures(sys.argv[1])
    import torch

    torch.zeros(1, device="cuda")
    ways = kinds(torch)
    for kind, work in ways.items():
        figures.part(f"graphs, {kind}", lambda kind=kind, work=work: by_kind(figures, torch, kind, work))  # type: ignore[misc]
    figures.part("many graphs", lambda: many(figures, torch, ways["kernel"]))


if __name__ == "__main__":
    main()
