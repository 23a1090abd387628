"""AveragedModel: a second model, which is moved in place.

gpu: 1 GiB
truth: fits, 6 * 64 MiB
"""

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(16)]).to("cuda")
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
for _ in range(4):
    model(torch.randn(1, 1024, device="cuda")).sum().backward()
    optimizer.step()
    average.update_parameters(model)
    optimizer.zero_grad()
