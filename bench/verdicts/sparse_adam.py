"""SparseAdam: gradients have the rows that were used, the state has those of the table.

gpu: 1 GiB
truth: fits, 3 * 200 MiB
"""

import torch

table = torch.nn.Embedding(51200, 1024, sparse=True).to("cuda")
optimizer = torch.optim.SparseAdam(table.parameters(), 0.1)
for _ in range(4):
    table(torch.randint(0, 51200, (2, 64)).to("cuda")).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
