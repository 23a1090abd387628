"""The same decoded one picture and one tile at a time: what is kept is the picture.

gpu: 1 GiB
truth: fits
with: libraries
"""

import torch
from diffusers import AutoencoderKL

vae = AutoencoderKL(
    down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    block_out_channels=(32, 32), latent_channels=4, norm_num_groups=8, sample_size=512,
).to("cuda")  # fmt: skip
vae.enable_slicing()
vae.enable_tiling()
with torch.no_grad():
    print(vae.decode(torch.zeros(4, 4, 512, 512, device="cuda")).sample.shape)
