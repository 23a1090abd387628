"""A new column for every feature that is tried.

truth: leak cause=table
in: bench
"""

import time
import warnings

import numpy as np
import pandas as pd

warnings.simplefilter("ignore")
table = pd.DataFrame({"y": np.arange(1 << 16)})
for n in range(280):
    table[f"feature {n}"] = table["y"] * n  # LEAK
    time.sleep(0.02)
