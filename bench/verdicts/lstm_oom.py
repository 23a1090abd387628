"""A recurrent network keeps the gates of all its steps for the backward pass: at least 4 * 4 layers * 64 MiB.

gpu: 1 GiB
truth: out of memory
"""

import torch
from torch.nn.utils.rnn import pack_padded_sequence

rnn = torch.nn.LSTM(512, 512, num_layers=4).to("cuda")
x = torch.randn(512, 64, 512, device="cuda")
y, _ = rnn(pack_padded_sequence(x, torch.full((64,), 512)))
y.data.sum().backward()
