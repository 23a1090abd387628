"""bitsandbytes: weights of four bits, with a number of fp32 to each 64 of them.

gpu: 1 GiB
truth: fits, 32 * 9 + 32 + 2 * 16 + 8.125 MiB
with: libraries

Of the 32 weights of 2 ** 24 numbers: half a byte each, and 4 bytes to each 64. A product with 2,048 rows makes a weight
bfloat16 (32 MiB), since bitsandbytes 0.50 takes its fused kernel up to 1,536 rows only. Its rows in and out are 16 MiB
each, and cuBLAS's workspace is 8.125 MiB.
"""

import bitsandbytes
import torch

layers = []
for _ in range(32):
    layer = bitsandbytes.nn.Linear4bit(
        4096, 4096, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", compress_statistics=False
    )
    layers.append(layer.to(torch.bfloat16).to("cuda"))
x = torch.ones(2048, 4096, dtype=torch.bfloat16, device="cuda")
with torch.no_grad():
    for layer in layers:
        x = layer(x)
print(x.shape)
