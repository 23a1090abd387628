"""bitsandbytes: weights in 4 bits, LoRA on top (QLoRA), 8-bit paged optimizer."""

import bitsandbytes
import torch
from peft import LoraConfig, get_peft_model
from scale import pick
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

layers, width, batch, length = pick((16, 2048, 2, 512), (2, 128, 1, 32))
config = LlamaConfig(
    vocab_size=32000, hidden_size=width, intermediate_size=width * 11 // 4, num_hidden_layers=layers,
    num_attention_heads=width // 64, num_key_value_heads=width // 64,
)  # fmt: skip
model = LlamaForCausalLM(config)
for module in list(model.model.layers.modules()):
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            packed = bitsandbytes.nn.Linear4bit(
                child.in_features, child.out_features, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4"
            )
            packed.weight = bitsandbytes.nn.Params4bit(child.weight.data, requires_grad=False, quant_type="nf4")
            setattr(module, name, packed)
model = get_peft_model(model.cuda(), LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
optimizer = bitsandbytes.optim.AdamW8bit([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 32000, (batch, length)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
