"""1.5 GiB of weights that accelerate keeps on the host, one layer at a time on the device.

gpu: 512 MiB
truth: fits, 64 + 3 * 2 + 8.125 MiB
host: 24 * 64 + 3 * 2 MiB
with: libraries
"""

import torch
from accelerate import cpu_offload
from torch import nn

model = nn.Sequential(*[nn.Linear(4096, 4096, bias=False) for _ in range(24)])
cpu_offload(model, execution_device=torch.device("cuda"))
with torch.no_grad():
    for _ in range(2):
        model(torch.ones(128, 4096, device="cuda"))
