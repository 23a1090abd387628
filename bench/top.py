"""What hightide top takes while nobody types: processor time of a core, at a look a second, while it watches a run of a training.

    python bench/top.py [--seconds 60] [--quick]

It runs in a pseudo-terminal of 120 x 40. The bar: at most 2 % of a core.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

from common import HIGHTIDE, finish

BAR = 2.0  # percent of a core

TRAINING = """
import time
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters())
while True:
    model(torch.randn(32, 64)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.05)
"""
