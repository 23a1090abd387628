"""New workers for each epoch, which keep nothing. The agent's own looks must not be told as their copies.

truth: innocent
"""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 1200

    def __getitem__(self, index):
        return torch.randn(64, 512).mean(0)


def main():
    model = torch.nn.Linear(512, 10)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _epoch in range(4):
        for batch in DataLoader(Noise(), batch_size=8, num_workers=2):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            time.sleep(0.02)


main()
