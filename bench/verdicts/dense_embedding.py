"""The same with dense gradients: table, gradient and momentum.

gpu: 1 GiB
truth: out of memory
"""

import torch

table = torch.nn.Embedding(100_000, 1024).cuda()
optimizer = torch.optim.SGD(table.parameters(), 0.1, momentum=0.9)
for _ in range(4):
    table(torch.randint(0, 100_000, (4, 512)).cuda()).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
