"""Low-rank adapters written by hand over frozen weights: only theirs have gradients and states.

gpu: 1 GiB
truth: fits
says not: out of memory
"""

import torch


class Adapted(torch.nn.Module):
    def __init__(self, n, rank):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n, n), requires_grad=False)
        self.a, self.b = torch.nn.Parameter(torch.randn(rank, n)), torch.nn.Parameter(torch.zeros(n, rank))

    def forward(self, x):
        return x @ self.weight.T + x @ self.a.T @ self.b.T


model = torch.nn.Sequential(*[Adapted(2048, 8) for _ in range(24)]).cuda()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for _ in range(3):
    model(torch.randn(256, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
