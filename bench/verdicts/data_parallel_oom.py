"""DataParallel gathers the outputs of both GPUs on the first one, which does not hold them; either half it would.

gpu: 2 GiB
truth: out of memory
flags: --gpus 2
"""

import torch

model = torch.nn.DataParallel(torch.nn.Linear(256, 32768).cuda())
x = torch.randn(10240, 256, device="cuda")
for _ in range(2):
    model(x).sum().backward()
