"""One backward pass for the losses of 48 micro-batches: the graphs of all of them live until then.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    losses = []
    for _ in range(48):
        losses.append(model(torch.randn(4096, 512, device="cuda")).square().mean())
    torch.stack(losses).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
