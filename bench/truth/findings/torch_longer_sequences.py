"""A recurrent model whose sequences get longer with the steps. Nothing is kept.

truth: innocent
"""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model, head = nn.GRU(32, 64, batch_first=True), nn.Linear(64, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])


def loss_of(x):
    out, _ = model(x)
    return head(out).pow(2).mean()


def main():
    for step in range(240):
        x = torch.randn(64, 4 + step // 3, 32)
        loss = loss_of(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
