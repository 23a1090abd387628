"""Every batch is out of memory, which the program catches: it goes on to its end without a step.

gpu: 1 GiB
truth: out of memory
says: the program caught it and took no step
"""

import torch

model = torch.nn.Linear(1 << 10, 1 << 10, device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(10):
    try:
        model(torch.empty(1 << 18, 1 << 10, device="cuda")).sum().backward()
        optimizer.step()
    except torch.cuda.OutOfMemoryError:
        optimizer.zero_grad()
