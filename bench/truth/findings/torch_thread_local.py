"""What a thread has of its own.

truth: leak cause=local.rows
"""

import threading

import torch
from _torch_steps import training

local = threading.local()
local.rows = []
for _ in training():
    local.rows.append(torch.rand(256, 1024))  # LEAK
