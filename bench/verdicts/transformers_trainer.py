"""A Trainer with an evaluation whose logits are kept: 512 of 32 MiB each.

gpu: 2 GiB
truth: out of memory
flags: --until evaluation --sandbox
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=16384, n_positions=64))
data = [{"input_ids": torch.arange(64), "labels": torch.arange(64)} for _ in range(4096)]
arguments = TrainingArguments(
    "out", per_device_train_batch_size=8, per_device_eval_batch_size=8, num_train_epochs=3, eval_strategy="epoch",
    report_to=[], save_strategy="no", logging_strategy="no", max_steps=-1,
)  # fmt: skip
Trainer(model, arguments, train_dataset=data, eval_dataset=data, compute_metrics=lambda _: {}).train()
