"""A frame that every batch of rows is appended to.

truth: leak cause=frame
in: bench
"""

import time

import numpy as np
import pandas as pd

frame = pd.DataFrame()
for n in range(300):
    rows = pd.DataFrame(np.full((256, 32), n, np.float64))
    frame = pd.concat([frame, rows], ignore_index=True)  # LEAK
    time.sleep(0.02)
