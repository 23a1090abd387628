"""A training of PyTorch with workers that load."""

import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.randn(64)


if __name__ == "__main__":
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, batch in enumerate(DataLoader(Noise(), batch_size=16, num_workers=2)):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if step == 3:
            print("ready", flush=True)
