"""A list in a context variable.

truth: leak cause=state
"""

import contextvars

import torch
from _torch_steps import training

state = contextvars.ContextVar("state")
state.set([])
for _ in training():
    state.get().append(torch.rand(256, 1024))  # LEAK
