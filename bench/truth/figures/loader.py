"""PyTorch's DataLoader with four workers, batches of 8 MiB, 200 MiB in the parent."""

import torch
from kernel import tree
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, number):
        return torch.full((1 << 19,), float(number))


held = torch.ones(50 << 20)
for number, _batch in enumerate(DataLoader(Data(), batch_size=4, num_workers=4)):
    if number % 12 == 11:
        tree(0.1)
