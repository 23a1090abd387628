"""The same with a larger table, whose state does not fit; with SGD it would.

gpu: 1 GiB
truth: out of memory
"""

import torch

table = torch.nn.Embedding(70000, 1024, sparse=True).to("cuda")
optimizer = torch.optim.SparseAdam(table.parameters(), 0.1)
for _ in range(4):
    table(torch.randint(0, 70000, (2, 64)).to("cuda")).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
