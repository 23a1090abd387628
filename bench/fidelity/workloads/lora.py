"""LoRA: PEFT's adapters on a LLaMA whose weights are frozen, bf16."""

import torch
from peft import LoraConfig, get_peft_model
from scale import pick
from transformers import LlamaConfig, LlamaForCausalLM

layers, width, batch, length = pick((16, 2048, 4, 512), (2, 128, 1, 32))
config = LlamaConfig(
    vocab_size=32000, hidden_size=width, intermediate_size=width * 11 // 4, num_hidden_layers=layers,
    num_attention_heads=width // 64, num_key_value_heads=width // 64,
)  # fmt: skip
with torch.device("cuda"):
    model = LlamaForCausalLM(config).to(torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], lora_dropout=0.05))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 32000, (batch, length)).cuda()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
