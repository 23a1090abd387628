"""LoRA on a stack of frozen bfloat16 weights: no gradient and no state of Adam but the adapters'.

gpu: 1 GiB
truth: fits, 16 * 32 + 3 * 8 + 16 * 2.258 + 8 + 8.125 MiB
with: libraries

Weights of 32 MiB; adapters of rank 16 in fp32, 8 MiB, with Adam's two states. As backward begins, autograd keeps of each
layer its rows (2 MiB) and the adapters as bfloat16 (counted on the CPU, by a hook on what it saves); a gradient of rows is
there as bfloat16 and as fp32; cuBLAS's workspace.
"""

import torch
from peft import LoraConfig, get_peft_model
from torch import nn


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4096, 4096, bias=False, dtype=torch.bfloat16) for _ in range(16))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


model = get_peft_model(Stack(), LoraConfig(r=16, target_modules=r"layers\.\d+")).to("cuda")
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(4):
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(torch.ones(256, 4096, dtype=torch.bfloat16, device="cuda")).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
