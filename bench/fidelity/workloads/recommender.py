"""Embedding tables with sparse gradients, dense towers: two optimizers, SparseAdam and Adagrad."""

import torch
from scale import pick
from torch import nn

rows, width, batch = pick((1_000_000, 64, 8192), (1000, 8, 32))


class Model(nn.Module):
    def __init__(self, tables=8):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables)])
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + (tables + 1) * tables // 2, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, dense, ids, offsets):
        x = self.bottom(dense)
        vectors = torch.stack([x, *(table(i, offsets) for table, i in zip(self.tables, ids))], 1)
        pairs = vectors @ vectors.transpose(1, 2)
        i, j = torch.tril_indices(vectors.shape[1], vectors.shape[1], -1)
        return self.top(torch.cat([x, pairs[:, i, j]], 1)).squeeze(1)


model = Model().cuda()
sparse = torch.optim.SparseAdam(list(model.tables.parameters()))
dense = torch.optim.Adagrad([*model.bottom.parameters(), *model.top.parameters()])
offsets = torch.arange(0, 4 * batch, 4).cuda()
for _ in range(3):
    numbers, clicks = torch.randn(batch, 13).cuda(), torch.randint(0, 2, (batch,)).float().cuda()
    ids = [torch.randint(0, rows, (4 * batch,)).cuda() for _ in model.tables]
    loss = nn.functional.binary_cross_entropy_with_logits(model(numbers, ids, offsets), clicks)
    loss.backward()
    sparse.step()
    dense.step()
    sparse.zero_grad()
    dense.zero_grad()
