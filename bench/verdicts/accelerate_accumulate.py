"""Accelerate with gradients that are accumulated: weights, gradients and Adam's states, 4 * 128 MiB.

gpu: 1 GiB
truth: fits
with: libraries
says: over 3 steps
"""

import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4)
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, bias=False) for _ in range(8)])
data = torch.utils.data.DataLoader(torch.zeros(96, 2048), batch_size=8)
model, optimizer, data = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), data)
for x in data:
    with accelerator.accumulate(model):
        accelerator.backward(model(x).square().mean())
        optimizer.step()
        optimizer.zero_grad()
