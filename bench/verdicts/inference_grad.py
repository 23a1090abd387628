"""A longer input, where somebody forgot no_grad and the layers are kept for a backward that never comes.

gpu: 1 GiB
truth: out of memory
"""

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, bias=False) for _ in range(6)]).to("cuda").eval()
y = model(torch.randn(1 << 15, 2048, device="cuda"))
print(y.shape)
