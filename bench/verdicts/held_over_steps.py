"""What a step holds in its names goes when the next one has its own: the old and the new are there at once, no third.

gpu: 4 GiB
truth: fits, 1024 + 992 MiB
"""

import torch


def train():
    model = torch.nn.Linear(16, 16).cuda()
    adam = torch.optim.AdamW(model.parameters())
    for step in range(5):
        few = (torch.rand(4).cuda() > 0.5).sum().item()
        held = {"big": torch.empty(2**30 - step * 2**25, dtype=torch.uint8, device="cuda")}
        loss = model(torch.ones(4, 16).cuda()).sum() * (few * 0 + 1)
        loss.backward()
        adam.step()
        adam.zero_grad()
        print(step, loss.item(), len(held))


train()
