"""LitGPT's cache of keys and values: 2 * 4 layers * 4 sequences * 8 heads * 4,096 tokens * 64 * 2 bytes.

gpu: 1 GiB
truth: fits
with: libraries-4
says: KV cache
"""

import torch
from litgpt import GPT, Config

config = Config(
    block_size=4096, vocab_size=1000, padded_vocab_size=1024, n_layer=4, n_head=8, n_embd=512, intermediate_size=1024,
)  # fmt: skip
model = GPT(config).to("cuda").to(torch.bfloat16)
model.set_kv_cache(batch_size=4, device=torch.device("cuda"), dtype=torch.bfloat16)
with torch.no_grad():
    for position in range(4):
        model(torch.zeros(4, 1, dtype=torch.long, device="cuda"), torch.tensor([position], device="cuda"))
