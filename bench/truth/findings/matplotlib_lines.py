"""One figure, to which every plot adds its lines.

truth: leak cause=_children
in: bench
"""

import time

import matplotlib
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt

fig, ax = plt.subplots()
for n in range(250):
    values = np.random.random(1 << 15)
    ax.plot(values)  # LEAK
    time.sleep(0.025)
