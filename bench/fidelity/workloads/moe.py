"""Mixture of experts: Mixtral's routing, whose sizes depend on the data."""

import torch
from scale import pick
from transformers import MixtralConfig, MixtralForCausalLM

layers, width, batch, length = pick((4, 1024, 2, 512), (1, 64, 1, 16))
config = MixtralConfig(
    vocab_size=32000, hidden_size=width, intermediate_size=width * 2, num_hidden_layers=layers,
    num_attention_heads=width // 64, num_key_value_heads=max(1, width // 256), num_local_experts=8,
    output_router_logits=True,
)  # fmt: skip
model = MixtralForCausalLM(config).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 32000, (batch, length)).cuda()
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
