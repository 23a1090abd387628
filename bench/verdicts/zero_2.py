"""ZeRO-2: as ZeRO-1 at the peak, in the optimizer; the other half's gradients were let go of before.

gpu: 1 GiB
truth: fits, 32 + 32 + 64 + 32 + 32 MiB
with: deepspeed
flags: --world-size 2 --play 0 --steps 6
"""

from zero_1 import train

train(stage=2)
