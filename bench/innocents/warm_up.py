"""Buffers that fill during the first fifty steps and then are used again and again."""

import torch
from _training import SIZE, training

pool = []
for step, images in training():
    if step < 50:
        pool.append(torch.zeros(SIZE // 4))
    pool[step % 50][:256] = images[0]
