"""Buckets of lengths: a sampler on the host gives the longest one last.

gpu: 1 GiB
truth: out of memory
flags: --longest
"""

import torch
from torch.utils.data import DataLoader


class Lengths(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 2000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(64 + index * 8, dtype=torch.long)


class Buckets(torch.utils.data.Sampler):
    def __iter__(self):
        return iter([list(range(first, first + 20)) for first in range(0, 2000, 20)])

    def __len__(self) -> int:
        return 100


def pad(batch: list) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(batch, batch_first=True)


model = torch.nn.Embedding(1000, 512).to("cuda")
optimizer = torch.optim.SGD(model.parameters())
for batch in DataLoader(Lengths(), batch_sampler=Buckets(), collate_fn=pad):
    model(batch.to("cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
