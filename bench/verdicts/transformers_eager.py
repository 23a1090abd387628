"""Attention in plain operations: of each layer the scores of 4 heads in fp32 are kept twice.

gpu: 1 GiB
truth: out of memory
says: eager

Softmax keeps its result, and so does the product after it: 4 * 4 * 2048 ** 2 * 4 bytes = 256 MiB a layer, of 4 layers.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, vocab_size=1000,
    attn_implementation="eager",
)  # fmt: skip
model = LlamaForCausalLM(config).to("cuda")
ids = torch.randint(0, 1000, (4, 2048)).to("cuda")
model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
