"""Train a small CNN on scikit-learn's handwritten digits, with a planted leak.

    hightide run -- python examples/digits_leak.py

The same training as digits.py, but it keeps a history of its losses for a plot. Each loss still
carries its autograd graph, and the graph holds what the layers saved for their backward pass:
more than a mebibyte a step. `history.append(loss.item())` would keep 24 bytes.
"""

import torch
from digits import BATCH, Net, accuracy, digits
from torch import nn
from torch.utils.data import DataLoader

EPOCHS = 12


def train(model, loader, optimizer, loss_fn, history):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(images), labels)
        loss.backward(retain_graph=True)  # left over from a second backward pass that is gone
        optimizer.step()
        history.append(loss)  # LEAK: keeps the whole graph of every step


def main():
    torch.manual_seed(0)
    train_set, test_set = digits()
    workers = {"num_workers": 2, "persistent_workers": True}
    train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, **workers)
    test_loader = DataLoader(test_set, batch_size=BATCH, **workers)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history = []
    for epoch in range(1, EPOCHS + 1):
        train(model, train_loader, optimizer, nn.CrossEntropyLoss(), history)
        print(
            f"epoch {epoch:2d}  loss {history[-1].item():.3f}  accuracy {accuracy(model, test_loader):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
