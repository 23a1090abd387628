"""Transformer encoder: BERT, masked language modelling with padding masks."""

import torch
from scale import pick
from transformers import BertConfig, BertForMaskedLM

layers, batch, length = pick((12, 16, 256), (2, 2, 32))
model = BertForMaskedLM(BertConfig(num_hidden_layers=layers)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    ids = torch.randint(5, 30000, (batch, length)).cuda()
    mask = (torch.arange(length)[None] < torch.randint(length // 2, length, (batch, 1))).long().cuda()
    loss = model(ids, attention_mask=mask, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
