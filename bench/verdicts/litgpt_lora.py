"""LitGPT's LoRA: of 4 * 64 MiB of frozen weights in bfloat16 no gradient is made.

gpu: 1 GiB
truth: fits
with: libraries-4
"""

import torch
from litgpt.lora import GPT, Config, mark_only_lora_as_trainable

config = Config(
    block_size=256, vocab_size=1000, padded_vocab_size=1024, n_layer=4, n_head=16, n_embd=2048,
    intermediate_size=8192, lora_r=8, lora_query=True, lora_value=True,
)  # fmt: skip
model = GPT(config).to(torch.bfloat16).to("cuda")
mark_only_lora_as_trainable(model)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for _ in range(4):
    ids = torch.randint(0, 1000, (2, 256)).to("cuda")
    model(ids).float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
