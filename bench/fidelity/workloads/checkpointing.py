"""Activation checkpointing: GPT-2 medium, bf16."""

import torch
from scale import pick
from transformers import GPT2Config, GPT2LMHeadModel

layers, width, heads, batch, length = pick((24, 1024, 16, 8, 1024), (2, 128, 2, 2, 64))
config = GPT2Config(n_layer=layers, n_embd=width, n_head=heads)
model = GPT2LMHeadModel(config).cuda()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 50257, (batch, length)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(ids, labels=ids, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
