"""Under autocast weights are cast once and activations take half.

gpu: 1 GiB
truth: fits
"""

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)]).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for _ in range(5):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(8192, 2048, device="cuda")).float().square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
