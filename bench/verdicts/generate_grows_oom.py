"""The cache of generate() grows by 4 MiB with each of 250 tokens.

gpu: 1 GiB
truth: out of memory
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(n_layer=4, n_embd=1024, n_head=16, vocab_size=1000, n_positions=512)
model = GPT2LMHeadModel(config).to("cuda").eval()
with torch.no_grad():
    model.generate(
        torch.ones(128, 8, dtype=torch.long, device="cuda"), max_new_tokens=250, do_sample=True, pad_token_id=0
    )
