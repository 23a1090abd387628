"""bitsandbytes: weights of four bits, whose scales are quantised too.

gpu: 1 GiB
truth: fits, 32 * 8.256 + 32 + 2 * 1 + 2 * 16 + 8.125 MiB
with: libraries

Of a weight of 2 ** 24 numbers: 8 MiB, 2 ** 18 scales of a byte, 2 ** 10 scales of those of 4 bytes, tables of
1,024 and 64 bytes, an offset. A product with 2,048 rows makes the scales fp32, 1 MiB, adds the offset, another,
and makes the weight bfloat16, 32 MiB; its rows in and out are 16 MiB each, and cuBLAS's workspace is 8.125 MiB.
"""

import bitsandbytes
import torch

layers = []
for _ in range(32):
    layer = bitsandbytes.nn.Linear4bit(4096, 4096, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4")
    layers.append(layer.to(torch.bfloat16).to("cuda"))
x = torch.ones(2048, 4096, dtype=torch.bfloat16, device="cuda")
with torch.no_grad():
    for layer in layers:
        x = layer(x)
print(x.shape)
