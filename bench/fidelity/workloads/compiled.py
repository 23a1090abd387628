"""torch.compile: an MLP-mixer block through Inductor and Triton, compiled anew and then out of the caches."""

import torch
from scale import pick
from torch import nn

batch, tokens, width = pick((64, 196, 512), (2, 16, 32))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.along = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.across(self.one(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.two(x))


model = nn.Sequential(*[Mixer() for _ in range(2)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in ("caches cold", "caches warm"):
    torch.compiler.reset()
    compiled = torch.compile(model)
    for _ in range(4):
        loss = compiled(torch.randn(batch, tokens, width, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
