"""Every second of many tensors of about 1 MiB is kept. The next are a little larger and do not fit into the holes."""

import ctypes

import torch
from kernel import mark, say

torch.set_num_threads(1)
libc = ctypes.CDLL(None)


class Info(ctypes.Structure):
    """What mallinfo2 returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


libc.mallinfo2.restype = Info
kept: list[torch.Tensor] = []
free = 0
for turn in range(10):
    batch = [torch.ones((1 << 18) - (1 << 16) + 13_000 * turn) for _ in range(130)]
    kept += batch[::2]
    free = libc.mallinfo2().fordblks
    del batch
mark()
say(free=free)
