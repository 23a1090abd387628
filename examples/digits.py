"""Train a small CNN on scikit-learn's handwritten digits: a training without a leak.

    hightide run -- python examples/digits.py

Real data (1,797 images of 8 x 8 pixels), DataLoader workers, Adam, an evaluation after each epoch.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

EPOCHS = 12
BATCH = 64


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(64 * 4 * 4, 10))

    def forward(self, images):
        return self.classifier(self.features(images))


def digits():
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    return random_split(TensorDataset(images, torch.tensor(data.target)), [1437, 360])


def train(model, loader, optimizer, loss_fn):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(images), labels)
        loss.backward()
        optimizer.step()


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def main():
    torch.manual_seed(0)
    train_set, test_set = digits()
    workers = {"num_workers": 2, "persistent_workers": True}
    train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, **workers)
    test_loader = DataLoader(test_set, batch_size=BATCH, **workers)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, EPOCHS + 1):
        train(model, train_loader, optimizer, nn.CrossEntropyLoss())
        print(f"epoch {epoch:2d}  accuracy {accuracy(model, test_loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
