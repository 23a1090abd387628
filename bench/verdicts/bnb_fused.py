"""bitsandbytes 0.50: a product with few rows reads the four bits themselves, and no weight is made bfloat16.

gpu: 1 GiB
truth: fits, 8 * 8.256 + 32 MiB
with: libraries

The most is held while the last weight is made four bits of: its 32 MiB of bfloat16 stand beside.
"""

import bitsandbytes
import torch

layers = []
for _ in range(8):
    layer = bitsandbytes.nn.Linear4bit(4096, 4096, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4")
    layers.append(layer.to(torch.bfloat16).to("cuda"))
x = torch.ones(1, 4096, dtype=torch.bfloat16, device="cuda")
with torch.no_grad():
    for _ in range(16):
        for layer in layers:
            x = layer(x)
print(x.shape)
