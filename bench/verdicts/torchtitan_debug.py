"""Torchtitan's own trainer with its smallest model, whose weights are drawn from a distribution that is cut.

gpu: 2 GiB
truth: fits
with: libraries
env: FLAVOR=debugmodel
env: HF_HOME=.
env: RANK=0
env: WORLD_SIZE=1
env: LOCAL_RANK=0
env: LOCAL_WORLD_SIZE=1
env: MASTER_ADDR=127.0.0.1
env: MASTER_PORT=0
"""

import pathlib
import runpy

runpy.run_path(str(pathlib.Path(__file__).with_name("torchtitan_8b.py")))
