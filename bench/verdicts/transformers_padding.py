"""GPT-2 with an attention mask of ones, as every Trainer has it.

gpu: 2 GiB
truth: fits
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=256, n_head=4, vocab_size=1000, n_positions=4096)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
ids = torch.randint(0, 1000, (4, 2048)).to("cuda")
mask = torch.ones_like(ids)
for _ in range(4):
    model(input_ids=ids, attention_mask=mask, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
