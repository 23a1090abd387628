"""An inference loop without no_grad: every output keeps its graph. No step is ever taken.

truth: leak cause=outputs
"""

import time

import torch

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Tanh(), torch.nn.Linear(512, 4))
outputs = []


def predict(batch):
    return model(batch)  # LEAK


for _ in range(300):
    batch = torch.rand(256, 256)
    outputs.append(predict(batch))  # LEAK
    time.sleep(0.02)
