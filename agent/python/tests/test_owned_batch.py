"""Another size of a batch that a trainer owns, as an imagined run of `tune --goal batch` has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("torch")

BEGIN = """
import importlib, json, os
from hightide_agent.levers import owned_batch

os.environ[owned_batch.VARIABLE] = "12"
facts, sizes = {}, []

def watch(name, then):
    if name.startswith(("transformers.", NAMED)):
        then(importlib.import_module(name))

owned_batch.install(watch, facts.__setitem__)
"""

TRAINER = """
import tempfile
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

class Model(GPT2LMHeadModel):
    def forward(self, input_ids=None, labels=None, **more):
        sizes.append(len(input_ids))
        return super().forward(input_ids, labels=labels, **more)

model = Model(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=1, n_positions=8))
row = torch.zeros(8, dtype=torch.long)
with tempfile.TemporaryDirectory() as folder:
    Trainer(model, TrainingArguments(folder, per_device_train_batch_size=3, max_steps=4, report_to=[], use_cpu=True,
            save_strategy="no", disable_tqdm=True), train_dataset=[{"input_ids": row, "labels": row}] * 30).train()
print(json.dumps([facts, sizes]))
"""

LIGHTNING = """
import warnings
warnings.filterwarnings("ignore")
import torch
import lightning.pytorch as lightning

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        sizes.append(len(batch))
        return self.layer(batch).square().mean()

    def validation_step(self, batch, index):
        assert len(batch) == 5, "an evaluation keeps its own"

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

loaders = [torch.utils.data.DataLoader(torch.randn(30, 4), batch_size=size, shuffle=size == 3) for size in (3, 5)]
lightning.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                  enable_model_summary=False, accelerator="cpu").fit(Model(), *loaders)
print(json.dumps([facts, sizes]))
"""


@pytest.mark.parametrize(("needs", "script", "owner"), [
    ("transformers", TRAINER, "per_device_train_batch_size of transformers' TrainingArguments"),
    ("lightning", LIGHTNING, "batch_size of the DataLoader that Lightning trains with"),
])  # fmt: skip
def test_batches_have_the_size(observe: Any, needs: str, script: str, owner: str) -> None:
    pytest.importorskip(needs)
    result = observe(BEGIN.replace("NAMED", "'lightning.'" if needs == "lightning" else "'-'") + script)
    facts, sizes = json.loads(result.out.splitlines()[-1])
    assert facts == {"batch owner": owner, "batch samples": 30}
    assert sizes[:3] == [12, 12, 6] and set(sizes) == {12, 6}
