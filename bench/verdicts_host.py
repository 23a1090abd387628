"""Run a program of bench/verdicts on the host, and print the most bytes that its tensors held at a time.

    python bench/verdicts_host.py bench/verdicts/size_mask.py

What it says of "cuda" it does on the CPU, so that every value is computed. The bytes are those of PyTorch's own
allocator of the host, one request after the other, from its profiler.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch


def main() -> None:
    path = Path(sys.argv[1])
    code = compile(path.read_text().replace('"cuda"', '"cpu"'), str(path), "exec")
    with torch.autograd.profiler.profile(use_cpu=True, profile_memory=True) as profile:
        exec(code, {"__name__": "__main__", "__file__": str(path)})  # a file of ours
    held = most = 0
    events = [e for e in profile.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    print(most)


if __name__ == "__main__":
    main()
