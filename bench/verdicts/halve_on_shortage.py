"""A batch that is halved whenever memory runs out, until a step works: it fits, and says how many shortages were caught.

gpu: 1 GiB
truth: fits
says: out-of-memory errors that it caught
"""

import torch

model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch, steps = 1 << 21, 0
while steps < 4:
    try:
        model(torch.randn(batch, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    except torch.cuda.OutOfMemoryError:
        optimizer.zero_grad()
        batch //= 2
