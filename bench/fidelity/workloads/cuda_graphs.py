"""CUDA graphs: a whole training step captured, then replayed."""

import torch
from scale import pick
from torch import nn

batch, width = pick((4096, 2048), (32, 64))
model = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4 * width, width)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
inputs, wanted = torch.randn(batch, width, device="cuda"), torch.randn(batch, width, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
for _ in range(5):
    inputs.copy_(torch.randn(batch, width))
    graph.replay()
torch.cuda.synchronize()
