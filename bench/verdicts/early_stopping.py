"""Early stopping by a class of the program's own; it stops or not, memory is the same.

gpu: 1 GiB
truth: fits
"""

import torch


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def stop(self, value):
        if value < self.best - 1e-4:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


model = torch.nn.Linear(1024, 1024, device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
early = EarlyStopping(3)
for _ in range(10):
    model.train()
    for _ in range(4):
        loss = model(torch.ones(64, 1024, device="cuda")).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        value = model(torch.ones(64, 1024, device="cuda")).pow(2).mean().item()
    if early.stop(value):
        break
print("done")
