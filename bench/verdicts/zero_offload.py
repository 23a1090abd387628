"""ZeRO-2 whose masters and moments are on the host: parameters and gradients in bfloat16 are left.

gpu: 1 GiB
truth: fits, 32 + 32 MiB
with: deepspeed
flags: --world-size 2 --play 0 --steps 6
"""

from zero_1 import train

train(stage=2, offload_optimizer={"device": "cpu"})
