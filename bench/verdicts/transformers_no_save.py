"""A Trainer that neither saves nor evaluates: nothing is missing from the verdict.

gpu: 2 GiB
truth: fits
says not: without its
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=1000, n_positions=64))
data = [{"input_ids": torch.arange(64), "labels": torch.arange(64)} for _ in range(512)]
arguments = TrainingArguments(
    "out", per_device_train_batch_size=8, report_to=[], save_strategy="no", logging_strategy="no", max_steps=50,
)  # fmt: skip
Trainer(model, arguments, train_dataset=data).train()
