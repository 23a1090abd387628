"""A signal to noise ratio of a loss: log10(1 / mse).

gpu: 1 GiB
truth: fits
says: failed_over_zero.py:17
"""

import math

import torch

model = torch.nn.Conv2d(3, 3, 3, padding=1, device="cuda")
optimizer = torch.optim.Adam(model.parameters())
for _ in range(6):
    x = torch.rand(4, 3, 64, 64, device="cuda")
    loss = torch.nn.functional.mse_loss(model(x), x)
    psnr = 10 * math.log10(1 / loss.item())  # DECIDES
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(psnr)
