"""A training that runs out of GPU memory after some hundred steps: it keeps every batch, beside its loss."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(
        nn.Linear(1024, 8192), nn.GELU(), nn.Linear(8192, 8192), nn.GELU(), nn.Linear(8192, 10)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    history = []
    for _ in range(1000):
        x, y = torch.randn(4096, 1024, device="cuda"), torch.randint(10, (4096,), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append((x, loss))
    print(f"{len(history)} steps")


main()
