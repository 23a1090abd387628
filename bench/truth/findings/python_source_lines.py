"""A file is written and quoted from at each turn: the standard library keeps the lines of each.

truth: leak cause=linecache.cache
"""

import linecache
import os
import tempfile
import time

with tempfile.TemporaryDirectory() as folder:
    for turn in range(600):
        path = os.path.join(folder, f"made{turn}.py")
        with open(path, "w") as file:
            file.write(f"value = {turn}\n" * 1500)
        linecache.getline(path, 3)  # LEAK
        os.unlink(path)
        time.sleep(0.015)
