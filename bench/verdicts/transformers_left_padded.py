"""Llama in bfloat16 with padding on the left: a mask of four dimensions, which the flash kernel does not take.

gpu: 1 GiB
truth: fits
says: attention efficient
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2,
    vocab_size=1000,
)  # fmt: skip
model = LlamaForCausalLM(config).to(torch.bfloat16).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
ids = torch.randint(0, 1000, (2, 2048)).to("cuda")
mask = torch.ones(2, 2048, dtype=torch.long)
mask[1, :100] = 0
mask = mask.to("cuda")
for _ in range(4):
    model(input_ids=ids, attention_mask=mask, labels=ids, use_cache=False).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
