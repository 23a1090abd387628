"""Mixtral's routing: a loop over the experts that were hit, whose tokens are together tokens × k.

gpu: 2 GiB
truth: fits
"""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

config = MixtralConfig(
    vocab_size=1000, hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8,
    num_key_value_heads=2, num_local_experts=32, num_experts_per_tok=2,
)  # fmt: skip
model = MixtralForCausalLM(config).to("cuda")
ids = torch.randint(0, 1000, (4, 1024)).to("cuda")
model(input_ids=ids, labels=ids).loss.backward()
