"""A loss is given to a function that decides whether copies are kept.

gpu: 1 GiB
truth: out of memory
"""

import torch

kept = []


class Stopper:
    best = 1e9

    def better(self, value):
        if value < self.best:
            self.best = value
            return True
        return False


s = Stopper()
x = torch.rand(64 << 20, device="cuda")
for i in range(8):
    loss = (x[:10].abs().sum() + 100 - i).item()  # DECIDES
    if s.better(loss):
        kept.append(x.clone())
print(len(kept))
