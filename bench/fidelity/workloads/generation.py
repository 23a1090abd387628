"""Generation with a KV cache: greedy and sampled."""

import torch
from scale import pick
from transformers import GPT2Config, GPT2LMHeadModel

layers, batch, prompt, new = pick((12, 8, 128, 64), (2, 2, 8, 8))
model = GPT2LMHeadModel(GPT2Config(n_layer=layers, eos_token_id=None, pad_token_id=0)).cuda().half().eval()
ids = torch.randint(0, 50257, (batch, prompt)).cuda()
with torch.inference_mode():
    for sample in (False, True):
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=sample)
        print(tuple(out.shape))
