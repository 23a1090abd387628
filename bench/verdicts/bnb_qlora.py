"""QLoRA: weights of four bits, adapters of rank 16 that are trained; a backward pass makes each weight bfloat16 again.

gpu: 2 GiB
truth: fits, 16 * 8.256 + 8 + 32 * 16 + 5 + 16 + 32 + 2 * 16 MiB
with: libraries

Of each layer autograd keeps two tensors of 16 MiB (counted on the CPU, by a hook on what it saves) and the adapter's small
ones; backward holds the weight as bfloat16, 32 MiB, and a gradient in and out. The adapters' weights are fp32.
"""

import bitsandbytes
import torch
from peft import LoraConfig, get_peft_model
from torch import nn


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            bitsandbytes.nn.Linear4bit(4096, 4096, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4")
            for _ in range(16)
        )

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


model = get_peft_model(Stack().to(torch.bfloat16).to("cuda"), LoraConfig(r=16, target_modules=r"layers\.\d+"))
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(3):
    x = torch.ones(2048, 4096, dtype=torch.bfloat16, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(x).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
