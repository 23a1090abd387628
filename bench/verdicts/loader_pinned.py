"""Workers hand batches over by pinned memory: what waits in it is the host's. Batch, last result and next one: three.

gpu: 1 GiB
truth: fits, 400 + 3 * 32 MiB
"""

import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.zeros(64, 1 << 20))
    weight = torch.zeros(100 << 20, device="cuda")
    for (x,) in DataLoader(data, batch_size=8, num_workers=2, pin_memory=True, prefetch_factor=3):
        batch = x.to("cuda", non_blocking=True)
        result = batch * 2
