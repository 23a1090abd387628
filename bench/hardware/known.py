"""A program whose memory is known: 1 GiB, held while kernels run. It leaves its own figures in a file of JSON."""

from __future__ import annotations

import json
import sys
import time

import torch

ENOUGH = 3.0  # seconds: long enough that samples ten times a second see it


def main() -> None:
    held = [torch.zeros(1 << 26, device="cuda") for _ in range(4)]
    end = time.monotonic() + ENOUGH
    while time.monotonic() < end:
        for tensor in held:
            tensor.add_(1)
        torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    found = {
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "used": total - free,
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
