"""Recurrent: a two-layer LSTM language model with dropout and packed sequences, cuDNN."""

import torch
from scale import pick
from torch import nn

batch, length, width = pick((64, 128, 1024), (4, 16, 64))


class Model(nn.Module):
    def __init__(self, words=33278):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, 2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.lstm(packed)
        return self.head(nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=length)[0])


model = Model().cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    ids = torch.randint(0, 33278, (batch, length)).cuda()
    lengths = torch.linspace(length // 2, length, batch).long()
    loss = nn.functional.cross_entropy(model(ids, lengths).flatten(0, 1), ids.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    optimizer.zero_grad()
