"""The temporaries of AdamW over a list of tensors do not fit; parameters, gradients and its state would.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.ModuleList(torch.nn.Linear(1024, 1024, bias=False) for _ in range(42)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
for _ in range(4):
    for layer in model:
        layer(torch.randn(1, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
