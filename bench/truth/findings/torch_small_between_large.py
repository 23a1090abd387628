"""Small copies are kept at each step, between large blocks that come and go: malloc gives these back no more.

truth: leak cause=grads
"""

import time

import torch

model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
grads = []
for step in range(600):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(64, 784)), torch.randint(0, 10, (64,)))
    optimizer.zero_grad()
    loss.backward()
    grads.append(model[2].weight.grad.clone())  # LEAK
    optimizer.step()
    time.sleep(0.005)
