"""The same groups and joins over and over.

truth: innocent
in: bench
"""

import time

import numpy as np
import pandas as pd

table = pd.DataFrame({"key": np.arange(1 << 16) % 100, "value": np.ones(1 << 16)})
for n in range(250):
    means = table.groupby("key").mean()
    table.merge(means, on="key").sum()
    time.sleep(0.01)
