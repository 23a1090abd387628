"""Beams are chosen by scores, and the cache is ordered anew at each token: old and new one live at once.

gpu: 1 GiB
truth: fits, 64 + 64 + 64 MiB
"""

import torch

BEAMS, LENGTH, DIM = 8, 2048, 1024
scores = torch.zeros(BEAMS, device="cuda")
cache = torch.zeros(BEAMS, LENGTH, DIM, device="cuda")
for _ in range(4):
    chosen = (scores[:, None] + torch.randn(BEAMS, 100, device="cuda")).flatten().topk(BEAMS)
    scores, beams = chosen.values, chosen.indices // 100
    ordered = cache[beams]
    cache = ordered.clone()
    del ordered
