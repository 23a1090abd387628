"""A Triton kernel writes counts into zeros, and the largest is a size.

gpu: 1 GiB
truth: out of memory
"""

import torch
import triton
import triton.language as tl


@triton.jit
def count(x, out, n: tl.constexpr):
    v = tl.load(x + tl.arange(0, n))
    tl.store(out, tl.sum((v > 0.0).to(tl.int64), 0))


x = torch.rand(1024, device="cuda")
out = torch.zeros(1, dtype=torch.int64, device="cuda")
count[(1,)](x, out, 1024)
n = int(out.item())  # DECIDES
kept = torch.zeros(n << 19, device="cuda")
