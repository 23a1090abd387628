"""Encoder and decoder: T5, Adafactor."""

import torch
from scale import pick
from transformers import T5Config, T5ForConditionalGeneration

layers, batch, length = pick((12, 8, 256), (2, 2, 32))
config = T5Config(
    num_layers=layers, num_decoder_layers=layers, d_model=768, d_ff=3072, num_heads=12, decoder_start_token_id=0
)  # fmt: skip
model = T5ForConditionalGeneration(config).cuda()
optimizer = torch.optim.Adafactor(model.parameters())
for _ in range(3):
    ids = torch.randint(1, 32000, (batch, length)).cuda()
    labels = torch.randint(1, 32000, (batch, length // 4)).cuda()
    loss = model(input_ids=ids, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
