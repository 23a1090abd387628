"""Generation of 64 tokens, whose cache is small.

gpu: 1 GiB
truth: fits
says not: a second run
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=256, n_head=4, vocab_size=1000, n_positions=256)).to("cuda").eval()
ids = torch.randint(1, 1000, (4, 64)).to("cuda")
with torch.no_grad():
    out = model.generate(ids, max_new_tokens=64, do_sample=False, pad_token_id=0)
print(out.shape)
