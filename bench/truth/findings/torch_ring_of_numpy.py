"""A ring buffer made at the beginning, whose pages are touched as it fills, until four fifths of the steps.

truth: innocent
"""

import numpy as np
from _torch_steps import training

ring = np.zeros((240, 1 << 17), np.float64)
for step, _model in training(300, work=4):
    ring[step % 240] = step
