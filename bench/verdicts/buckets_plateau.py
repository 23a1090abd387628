"""A loader of 40 batches of each length, the shortest first: the longest comes after 280 steps.

gpu: 1 GiB
truth: out of memory
flags: --longest
"""

import torch
from torch.utils.data import DataLoader

lengths = [1024 * (1 + n // 160) for n in range(1280)]
data = [torch.zeros(1, 1).expand(n, 64) for n in lengths]
model = torch.nn.Linear(64, 64).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in DataLoader(data, batch_size=4, collate_fn=torch.nn.utils.rnn.pad_sequence):
    x = model(x.to("cuda").transpose(0, 1))
    scores = (x @ x.transpose(1, 2)).softmax(-1)
    scores.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
