"""Diffusion: a UNet with cross attention of diffusers, an average of the weights kept beside it."""

import torch
from diffusers import DDPMScheduler, UNet2DConditionModel
from scale import pick

size, width, batch = pick((64, 128, 4), (16, 32, 1))
model = UNet2DConditionModel(
    sample_size=size, block_out_channels=(width, 2 * width, 4 * width), layers_per_block=2, cross_attention_dim=768,
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), attention_head_dim=8,
).cuda()  # fmt: skip
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
noising = DDPMScheduler()
for _ in range(3):
    latents, text = torch.randn(batch, 4, size, size).cuda(), torch.randn(batch, 77, 768).cuda()
    noise, when = torch.randn_like(latents), torch.randint(0, 1000, (batch,), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        guess = model(noising.add_noise(latents, noise, when), when, text).sample
        loss = torch.nn.functional.mse_loss(guess, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    average.update_parameters(model)
