"""bitsandbytes: the state of Adam in 8 bits."""

import bitsandbytes
import torch
from scale import pick
from transformers import GPT2Config, GPT2LMHeadModel

layers, batch, length = pick((12, 4, 256), (1, 1, 16))
model = GPT2LMHeadModel(GPT2Config(n_layer=layers)).cuda()
optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 50257, (batch, length)).cuda()
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
