"""Runs out of memory on a GPU, and on the CPU, while PyTorch's profiler looks on.

    python profiler_oom.py trace.json, with the imaginary GPU preloaded as in testdata/imagined/README.md
"""

import sys

import torch
from torch.profiler import ProfilerActivity, profile


def fill() -> int:
    kept = []
    try:
        while True:
            kept.append(torch.empty(3 << 30, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        print(error)
    return len(kept)


def ask_the_host() -> None:
    try:
        torch.empty(1 << 50, dtype=torch.uint8)
    except RuntimeError as error:
        print(error)


weight = torch.ones(1024, 1024, device="cuda", requires_grad=True)
(weight @ weight).sum().backward()  # imports what backward needs
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True) as recorded:
    fill()
    ask_the_host()
recorded.export_chrome_trace(sys.argv[1])
