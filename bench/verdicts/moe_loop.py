"""A loop over 64 experts, each of which takes the tokens that were routed to it: together tokens × k.

gpu: 1 GiB
truth: fits
"""

import torch

EXPERTS, K, DIM = 64, 2, 1024
tokens = torch.randn(8192, DIM, device="cuda")
router = torch.nn.Linear(DIM, EXPERTS, device="cuda")
experts = torch.nn.ModuleList(torch.nn.Linear(DIM, DIM, bias=False) for _ in range(EXPERTS)).to("cuda", torch.bfloat16)
weights, chosen = torch.topk(router(tokens).softmax(-1), K)
outputs = torch.zeros_like(tokens, dtype=torch.bfloat16)
for number, expert in enumerate(experts):
    rows, slots = torch.where(chosen == number)
    out = expert(tokens[rows].bfloat16()) * weights[rows, slots, None]
    outputs = outputs.index_add(0, rows, out.bfloat16()) if number == 0 else outputs.index_add_(0, rows, out.bfloat16())
outputs.sum().backward()
