"""A figure for every plot, and none is closed.

truth: leak cause=pyplot
in: bench
"""

import io

import matplotlib
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt

plt.rcParams["figure.max_open_warning"] = 0


def plot(values):
    fig, ax = plt.subplots()  # LEAK
    ax.plot(values)  # LEAK
    fig.savefig(io.BytesIO())  # LEAK


for n in range(90):
    plot(np.random.random(20_000))
