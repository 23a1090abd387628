"""A small convolutional network with batch normalisation, whose workspace is bounded.

gpu: 1 GiB
truth: fits
"""

import torch

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(inplace=True),
    torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10),
).to("cuda")  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(4):
    loss = torch.nn.functional.cross_entropy(
        model(torch.randn(16, 3, 96, 96, device="cuda")), torch.zeros(16).long().to("cuda")
    )
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
