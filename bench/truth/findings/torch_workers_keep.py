"""A dataset that keeps each item in its worker, as a cache that nobody meant. Workers end with their epoch.

truth: leak cause=kept
"""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self):
        self.kept = {}

    def __len__(self):
        return 2400

    def __getitem__(self, index):
        item = torch.randn(64, 512)  # LEAK
        self.kept[index] = item.numpy()  # LEAK
        return item.mean(0)


def main():
    model = torch.nn.Linear(512, 10)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _epoch in range(2):
        for batch in DataLoader(Cached(), batch_size=8, num_workers=2):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            time.sleep(0.02)


main()
