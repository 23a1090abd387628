"""A frame of the last 30,000 rows, full after three quarters of the time.

truth: innocent
in: bench
"""

import time

import numpy as np
import pandas as pd

frame = pd.DataFrame()
for n in range(400):
    rows = pd.DataFrame(np.full((100, 64), n, np.float64))
    frame = pd.concat([frame, rows], ignore_index=True).tail(30_000)
    time.sleep(0.015)
