"""One sample of a thousand is far longer than the others.

gpu: 1 GiB
truth: out of memory
flags: --longest
"""

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

samples = [torch.randn(64, 64) for _ in range(1000)]
samples[700] = torch.randn(20_000, 64)
model = torch.nn.Linear(64, 256).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for batch in DataLoader(samples, batch_size=32, collate_fn=lambda b: pad_sequence(b, batch_first=True)):
    model(batch.to("cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
