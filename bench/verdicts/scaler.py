"""GradScaler skips its first steps, as the scale is too large: Adam's state is made later, and is as large.

gpu: 1 GiB
truth: fits, 5 * 64 MiB
"""

import torch

model = torch.nn.Linear(4096, 4096, bias=False).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
scaler = torch.amp.GradScaler("cuda")
for _ in range(8):
    with torch.autocast("cuda", torch.float16):
        loss = model(torch.randn(8, 4096, device="cuda")).square().sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
