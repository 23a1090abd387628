"""NumPy copies of each step's features, collected for an analysis that comes too late."""

import numpy as np
from _training import SIZE, training

features = []


def collect(images):
    row = np.resize(images.numpy(), SIZE // 4).copy()  # LEAK (site)
    features.append(row)  # LEAK (holder)


for _step, images in training():
    collect(images)
