"""The Trainer of transformers: bf16, accumulation, workers, evaluation at the end."""

import tempfile

import torch
from scale import pick
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

layers, batch, length = pick((6, 16, 256), (1, 2, 16))


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8 * batch

    def __getitem__(self, i):
        return {"input_ids": torch.full((length,), 5 + i), "labels": i % 2}


model = DistilBertForSequenceClassification(DistilBertConfig(n_layers=layers))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=batch, gradient_accumulation_steps=2, max_steps=3, bf16=True,
        report_to=[], logging_steps=1, save_strategy="no", seed=1,
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=Data()).train()
