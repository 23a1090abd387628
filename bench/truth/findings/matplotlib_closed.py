"""A figure for every plot, closed when it is saved.

truth: innocent
in: bench
"""

import io

import matplotlib
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt

for n in range(90):
    fig, ax = plt.subplots()
    ax.plot(np.random.random(20_000))
    fig.savefig(io.BytesIO())
    plt.close(fig)
