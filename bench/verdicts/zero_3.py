"""ZeRO-3: the parameters are halved too. It keeps a buffer of its half's gradients and a bucket of 4 Mi elements.

gpu: 1 GiB
truth: fits, 16 + 32 + 64 + 16 + 8 + 32 + 32 + 8 MiB
with: deepspeed
flags: --world-size 2 --play 0 --steps 6
"""

from zero_1 import train

train(stage=3)
