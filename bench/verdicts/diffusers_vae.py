"""A picture of 1,024 x 1,024 decoded whole: one of the last block's outputs is 4 * 32 * 1024 ** 2 * 4 bytes.

gpu: 1 GiB
truth: out of memory
with: libraries
"""

import torch
from diffusers import AutoencoderKL

vae = AutoencoderKL(
    down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    block_out_channels=(32, 32), latent_channels=4, norm_num_groups=8, sample_size=512,
).to("cuda")  # fmt: skip
with torch.no_grad():
    print(vae.decode(torch.zeros(4, 4, 512, 512, device="cuda")).sample.shape)
