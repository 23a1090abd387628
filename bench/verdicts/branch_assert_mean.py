"""A check of a mean that a tensor of the host works out, between two bounds and in another function: it passes.

gpu: 1 GiB
truth: fits, 6 * 16 MiB
says not: decides
"""

import torch


def average(losses):
    return torch.tensor(losses).mean().item()


def train():
    layer = torch.nn.Linear(2048, 2048, bias=False).cuda()
    adam = torch.optim.AdamW(layer.parameters(), foreach=False)
    losses = []
    for _ in range(4):
        loss = layer(torch.randn(8, 2048, device="cuda")).pow(2).mean()
        loss.backward()
        losses.append(loss.item())
        adam.step()
        adam.zero_grad()
    return average(losses)


result = train()
assert 1 < result < 2, result
