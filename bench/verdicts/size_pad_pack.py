"""A recurrent network over sequences whose lengths the host wrote.

gpu: 1 GiB
truth: fits
"""

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

lengths = torch.tensor([200, 180, 90, 10])
rnn = torch.nn.LSTM(64, 128, batch_first=True, device="cuda")
x = torch.randn(4, 200, 64, device="cuda")
y, _ = rnn(pack_padded_sequence(x, lengths, batch_first=True))
y, lengths = pad_packed_sequence(y, batch_first=True)
print(y.shape)
