"""Expandable segments: sequences of ever other lengths."""
# environment: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True

import torch
from scale import pick
from transformers import GPT2Config, GPT2LMHeadModel

layers, batch, lengths = pick((12, 8, (512, 128, 384, 640)), (2, 2, (32, 16, 48)))
model = GPT2LMHeadModel(GPT2Config(n_layer=layers)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for length in lengths:
    ids = torch.randint(0, 50257, (batch, length)).cuda()
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
