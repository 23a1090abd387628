"""Qwen's mixture of experts with all of its 64 experts in a loop.

gpu: 2 GiB
truth: fits
"""

import torch
from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM

config = Qwen2MoeConfig(
    vocab_size=1000, hidden_size=512, intermediate_size=512, moe_intermediate_size=256, num_hidden_layers=2,
    shared_expert_intermediate_size=256, num_attention_heads=8, num_key_value_heads=2, num_experts=64, num_experts_per_tok=4,
)  # fmt: skip
model = Qwen2MoeForCausalLM(config).to("cuda")
ids = torch.randint(0, 1000, (4, 1024)).to("cuda")
model(input_ids=ids, labels=ids).loss.backward()
