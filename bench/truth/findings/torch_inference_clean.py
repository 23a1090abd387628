"""An inference loop that keeps numbers only.

truth: innocent
"""

import time

import torch

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, 4))
best = []
with torch.no_grad():
    for _ in range(300):
        out = model(torch.rand(256, 256))
        best.append(int(out.argmax()))
        time.sleep(0.02)
