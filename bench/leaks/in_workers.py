"""A dataset that caches decoded samples inside each DataLoader worker, without a bound.

Every step loads one batch of four samples; each of two workers keeps what it decoded.
"""

import torch
from _training import SIZE, STEPS, training
from torch.utils.data import DataLoader, Dataset

BATCH = 4


class Decoded(Dataset):
    def __init__(self):
        self.cache = {}

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        sample = torch.full((SIZE // BATCH // 4,), float(index))  # LEAK (site)
        self.cache[index] = sample  # LEAK (holder)
        return sample[:16].clone()


if __name__ == "__main__":
    loader = iter(DataLoader(Decoded(), batch_size=BATCH, num_workers=2))
    for _step, _images in training():
        next(loader)
