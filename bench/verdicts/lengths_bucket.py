"""Batches of a sampler have as many samples as tokens allow, and are padded to their longest: the largest is not the first.

gpu: 1 GiB
truth: out of memory
flags: --steps 20
"""

import torch

lengths = [64] * 63 + [8192] * 4
batches = [[i] * max(1, 4096 // lengths[i]) for i in range(len(lengths))]
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = torch.utils.data.DataLoader(
    [torch.ones(n, 64) for n in lengths],
    batch_sampler=[b for n, b in enumerate(batches) if n % 8 == 2 or n > 63],
    collate_fn=torch.nn.utils.rnn.pad_sequence,
)
for batch in loader:
    x = model(batch.cuda())
    scores = x[:, 0] @ x[:, 0].T
    scores.softmax(-1).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
