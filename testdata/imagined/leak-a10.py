"""Steps of a small network that keep a tensor each. Recipe of leak-a10.pickle (README.md)."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
kept = []
for _ in range(8):
    output = model(torch.randn(512, 256, device="cuda"))
    loss = output.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(output.detach().sigmoid())  # LEAK
