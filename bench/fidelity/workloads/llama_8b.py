"""LLaMA of 8 billion parameters in bf16, made on the device from its configuration; one step of fused AdamW."""
# gpu: h200

import torch
from scale import pick
from transformers import LlamaConfig, LlamaForCausalLM

layers, width, hidden, batch, length = pick((32, 4096, 14336, 2, 2048), (2, 256, 512, 1, 64))
config = LlamaConfig(
    vocab_size=128256, hidden_size=width, intermediate_size=hidden, num_hidden_layers=layers,
    num_attention_heads=width // 128, num_key_value_heads=max(1, width // 512), rope_theta=500000.0,
    max_position_embeddings=8192,
)  # fmt: skip
with torch.device("cuda"):
    torch.set_default_dtype(torch.bfloat16)
    model = LlamaForCausalLM(config)
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
for _ in range(2):
    ids = torch.randint(0, 128256, (batch, length), device="cuda")
    model(ids, labels=ids, use_cache=False).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
