"""Adapters merged into their weights, one after the other: the difference of one weight beside them all.

gpu: 1 GiB
truth: fits
with: libraries
"""

from peft import LoraConfig, get_peft_model
from torch import nn

model = nn.Sequential(*[nn.Linear(4096, 4096, bias=False) for _ in range(6)])
model = get_peft_model(model, LoraConfig(r=16, target_modules=[str(n) for n in range(6)])).to("cuda")
model = model.merge_and_unload()
print(sum(p.numel() for p in model.parameters()))
