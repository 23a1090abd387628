"""An optimizer that looks for overflow itself, as DeepSpeed's does: numbers that are finite make a byte that is 0.

gpu: 1 GiB
truth: fits, 6 * 64 MiB
says not: decides
"""

import torch

layer = torch.nn.Linear(4096, 4096, bias=False).cuda()
adam = torch.optim.AdamW(layer.parameters(), foreach=False)
seen = torch.zeros([1], device="cuda")
for _ in range(4):
    layer(torch.ones(8, 4096, device="cuda")).sum().backward()
    found = torch.zeros([1], device="cuda")
    for parameter in layer.parameters():
        largest = parameter.grad[:64].float()
        found += largest.isnan().logical_or(largest.isinf()).float().max()
        norm = torch.stack([torch.linalg.vector_norm(largest)]).pow(2).sum() ** 0.5
    over = found.bool().byte()
    seen += over
    invalid = bool((~torch.isfinite(norm) | (norm < 0)).any())
    if over[0].item() or invalid:
        adam.zero_grad()
        continue
    if over[0].item() != over.tolist()[0] or seen.item():
        raise RuntimeError("the same element is read as two numbers")
    adam.step()
    adam.zero_grad()
