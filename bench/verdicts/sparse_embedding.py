"""An embedding with sparse gradients: the gradient has the rows that were used, not the table.

gpu: 1 GiB
truth: fits
"""

import torch

table = torch.nn.Embedding(100_000, 1024, sparse=True).cuda()
optimizer = torch.optim.SGD(table.parameters(), 0.1)
for _ in range(4):
    table(torch.randint(0, 100_000, (4, 512)).cuda()).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
