"""The same as one mask of experts, which is asked for each.

gpu: 1 GiB
truth: fits
"""

import torch

EXPERTS, K, DIM = 32, 2, 1024
tokens = torch.randn(8192, DIM, device="cuda")
router = torch.nn.Linear(DIM, EXPERTS, device="cuda")
experts = torch.nn.ModuleList(torch.nn.Linear(DIM, DIM, bias=False) for _ in range(EXPERTS)).to("cuda")
weights, chosen = torch.topk(router(tokens).softmax(-1), K)
mask = torch.nn.functional.one_hot(chosen, EXPERTS).permute(2, 1, 0)
parts = []
for number in range(EXPERTS):
    slots, rows = torch.where(mask[number])
    parts.append(experts[number](tokens[rows]))
print(len(parts))
