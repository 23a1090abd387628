"""Weights of eight bits, each made bfloat16 for its product alone.

gpu: 1 GiB
truth: fits, 512 + 2 * 32 MiB
"""

import torch

weights = [torch.randint(-128, 127, (4096, 4096), dtype=torch.int8).to("cuda") for _ in range(32)]
scales = torch.rand(32, device="cuda", dtype=torch.bfloat16)
x = torch.randn(1, 4096, dtype=torch.bfloat16, device="cuda")
for number, weight in enumerate(weights):
    x = x @ (weight.to(torch.bfloat16) * scales[number])
print(x.shape)
