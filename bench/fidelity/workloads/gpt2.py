"""Transformer decoder: GPT-2, clipped gradients, a schedule."""

import torch
from scale import pick
from transformers import GPT2Config, GPT2LMHeadModel

layers, batch, length = pick((12, 8, 512), (2, 2, 32))
model = GPT2LMHeadModel(GPT2Config(n_layer=layers)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
for _ in range(3):
    ids = torch.randint(0, 50257, (batch, length), device="cuda")
    loss = model(ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
