"""DataParallel gathers the outputs of both GPUs on the first one: half of them twice.

gpu: 2 GiB
truth: fits
flags: --gpus 2
"""

import torch

model = torch.nn.DataParallel(torch.nn.Linear(256, 8192).cuda())
x = torch.randn(8192, 256, device="cuda")
for _ in range(2):
    model(x).sum().backward()
