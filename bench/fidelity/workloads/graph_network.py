"""A graph network: gather, index_add, softmax over edges; spectral convolutions with FFT beside it."""

import torch
from scale import pick
from torch import nn

nodes, edges, width = pick((50_000, 400_000, 128), (64, 256, 16))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update, self.norm = (
            nn.Linear(2 * width, width),
            nn.GRUCell(width, width),
            nn.LayerNorm(width),
        )
        self.filter = nn.Parameter(torch.randn(width // 2 + 1, 2) * 0.1)

    def forward(self, x, source, target):
        sent = torch.relu(self.message(torch.cat([x[source], x[target]], 1)))
        received = torch.zeros_like(x).index_add(0, target, sent)
        spectrum = torch.fft.rfft(received, dim=1) * torch.view_as_complex(self.filter)
        return self.norm(self.update(torch.fft.irfft(spectrum, n=width, dim=1), x))


layers = nn.ModuleList([Layer() for _ in range(3)]).cuda()
optimizer = torch.optim.Adam(layers.parameters())
for _ in range(3):
    x = torch.randn(nodes, width).cuda()
    source, target = torch.randint(0, nodes, (2, edges)).cuda()
    for layer in layers:
        x = layer(x, source, target)
    x.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
