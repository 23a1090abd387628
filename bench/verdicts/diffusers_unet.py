"""A UNet of diffusers learns to take noise away.

gpu: 2 GiB
truth: fits
with: libraries
"""

import torch
from diffusers import DDPMScheduler, UNet2DModel

model = UNet2DModel(
    sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(64, 128),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
).to("cuda")  # fmt: skip
scheduler = DDPMScheduler(num_train_timesteps=1000)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    clean = torch.zeros(8, 3, 32, 32, device="cuda")
    noise = torch.zeros_like(clean)
    steps = torch.randint(0, 1000, (8,), device="cuda")
    noisy = scheduler.add_noise(clean, noise, steps)
    torch.nn.functional.mse_loss(model(noisy, steps).sample, noise).backward()
    optimizer.step()
    optimizer.zero_grad()
