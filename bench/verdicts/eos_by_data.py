"""Generation ends when all have drawn the end: only the loop's bound is known, and all of it is taken.

gpu: 1 GiB
truth: out of memory
"""

import torch

torch.manual_seed(0)
kept = []
done = torch.zeros(4, dtype=torch.bool, device="cuda")
for _ in range(256):
    kept.append(torch.empty(1 << 20, device="cuda"))
    logits = torch.randn(4, 100, device="cuda")
    done |= logits.argmax(-1) == 0
    if done.all():  # DECIDES
        break
