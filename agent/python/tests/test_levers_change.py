"""Levers that change numbers: by no more than the rounding of a sum, or the program ends before it trains."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest

torch = pytest.importorskip("torch")

TRAINER = """
import sys, tempfile
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
config = GPT2Config(vocab_size=500, n_embd=32, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0,
                    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
class Model(GPT2LMHeadModel):
    def forward(self, input_ids=None, labels=None, **more):
        sizes.append(len(input_ids))
        return super().forward(input_ids, labels=labels, **more)

sizes = []
rows = [torch.randint(0, 500, (16,)) for _ in range(64)]
for row in rows[::3]:
    row[8:] = -100  # parts of a batch count unlike numbers of tokens
data = [{"input_ids": row.clamp(min=0), "labels": row} for row in rows]
model = Model(config)
with tempfile.TemporaryDirectory() as folder:
    Trainer(model, TrainingArguments(folder, per_device_train_batch_size=7, max_steps=4, logging_steps=1, report_to=[],
            save_strategy="no", use_cpu=True, disable_tqdm=True, learning_rate=1e-3), train_dataset=data).train()
print("sizes", sorted(set(sizes)))
for parameter in model.parameters():
    print("norm", parameter.norm().item())
"""

LIGHTNING = """
import warnings
warnings.filterwarnings("ignore")
import torch
import lightning.pytorch as lightning
from torch import nn

torch.manual_seed(0)
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(nn.Linear(8, 32), NORM, nn.GELU(), nn.Linear(32, 5))

    def forward(self, x):
        sizes.append(len(x))
        return self.parts(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)

sizes = []
data = [(torch.randn(8), torch.randint(0, 5, ()).long()) for _ in range(70)]
model = Model()
trainer = lightning.Trainer(max_steps=10, accelerator="cpu", logger=False, enable_checkpointing=False, barebones=True)
trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=7))
print("sizes", sorted(set(sizes)))
for parameter in model.parameters():
    print("norm", parameter.norm().item())
"""


ACCELERATE = """
import torch
from accelerate import Accelerator
from torch import nn

torch.manual_seed(0)
sizes, steps = [], []
class Model(nn.Sequential):
    def forward(self, x):
        (sizes if self.training else steps).append(len(x))
        return super().forward(x)

data = [(torch.randn(8), torch.randint(0, 5, ()).long()) for _ in range(70)]
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED)
model = Model(nn.Linear(8, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, loader, held, schedule = accelerator.prepare(
    model, optimizer, torch.utils.data.DataLoader(data, batch_size=7), torch.utils.data.DataLoader(data, batch_size=7),
    torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5))
for epoch in range(2):
    for x, y in loader:
        BODY
    model.eval()
    assert [len(x) for x, _ in held if model(x) is not None] == [7] * 10  # an evaluation is not cut
    model.train()
print("sizes", sorted(set(sizes)))
for parameter in [*model.parameters(), torch.tensor(float(schedule.get_last_lr()[0]))]:
    print("norm", parameter.norm().item())
"""
CLIPPED = """loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step(); schedule.step(); optimizer.zero_grad()"""
ACCUMULATE = """with accelerator.accumulate(model):
            accelerator.backward(nn.functional.cross_entropy(model(x), y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step(); schedule.step(); optimizer.zero_grad()"""


def accelerate(body: str, accumulated: int = 1) -> str:
    return ACCELERATE.replace("ACCUMULATED", str(accumulated)).replace("BODY", body)


def plan(**levers: Any) -> Dict[str, str]:
    return {"HIGHTIDE_PLAN": json.dumps({"levers": levers})}


def facts(result: Any) -> Dict[str, Any]:
    return {record["key"]: record["value"] for record in result.main.all("fact")}


def norms(text: str) -> List[float]:
    return [float(line.split()[1]) for line in text.splitlines() if line.startswith("norm ")]


@pytest.mark.parametrize(
    ("needs", "script", "sizes"),
    [("transformers", TRAINER, "[1, 3]"), ("lightning", LIGHTNING.replace("NORM", "nn.LayerNorm(32)"), "[1, 3]"),
     ("accelerate", accelerate(CLIPPED), "[1, 3]"), ("accelerate", accelerate(ACCUMULATE), "[1, 3]")],
)  # fmt: skip
def test_a_trainers_batches_in_parts(observe: Any, needs: str, script: str, sizes: str) -> None:
    """Steps with the whole batch and with parts of unlike sizes end at the same weights, but for rounding."""
    pytest.importorskip(needs)
    plain, changed = observe(script), observe(script, env=plan(micro_batch={"parts": 3}))
    assert facts(changed)["lever micro_batch"] == "each batch in 3 parts"
    assert "sizes " + sizes in changed.out and "sizes " + sizes not in plain.out
    assert len(norms(plain.out)) > 3
    assert norms(changed.out) == pytest.approx(norms(plain.out), rel=1e-3)


def test_parts_are_refused_by_name(observe: Any) -> None:
    pytest.importorskip("lightning")
    normed = observe(LIGHTNING.replace("NORM", "nn.BatchNorm1d(32)"), env=plan(micro_batch={"parts": 3}), ok=False)
    assert normed.code == 3 and "sizes" not in normed.out
    assert facts(normed)["plan refused"] == "micro_batch: parts.1 is a batch norm, which would see the parts alone"
    small = observe(LIGHTNING.replace("NORM", "nn.GELU()"), env=plan(micro_batch={"parts": 8}), ok=False)
    assert facts(small)["plan refused"] == "micro_batch: a batch of 7 samples is not cut into 8 parts"


def test_loops_of_accelerate_that_are_not_cut(observe: Any) -> None:
    """One that puts batches together itself, and one whose losses do not go by Accelerate: nothing is half applied."""
    pytest.importorskip("accelerate")
    together = observe(accelerate(ACCUMULATE, 2), env=plan(micro_batch={"parts": 3}), ok=False)
    assert together.code == 3 and "sizes" not in together.out
    assert "puts 2 batches together already" in facts(together)["plan refused"]
    own = CLIPPED.replace("accelerator.backward(loss)", "loss.backward()")
    plain = observe(accelerate(own), env=plan(micro_batch={"parts": 3}), ok=False)
    assert plain.code == 3 and "sizes" not in plain.out
    assert "backward pass" in facts(plain)["plan refused"], facts(plain)


LOSS = """
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Embedding(700, 16), nn.Linear(16, 700)

    def forward(self, x):
        return self.last(self.first(x))

model = Net().to(TYPE)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for step in range(10):
    x, y = torch.randint(0, 700, (900,)), torch.randint(0, 700, (900,))
    y[::7] = -100
    loss = F.cross_entropy(model(x), y, MORE)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("norm", loss.item(), loss.dtype)
for parameter in model.parameters():
    print("norm", parameter.norm().item(), parameter.grad.norm().item())
    print("norm", parameter.grad.norm().item())
"""


@pytest.mark.parametrize(
    ("kind", "more", "taken"),
    [("torch.float32", "", True), ("torch.float32", "reduction='sum'", True), ("torch.bfloat16", "", True),
     ("torch.float32", "label_smoothing=0.1", False), ("torch.float32", "weight=torch.rand(700)", False)],
)  # fmt: skip
def test_a_loss_in_chunks(observe: Any, kind: str, more: str, taken: bool) -> None:
    text = LOSS.replace("TYPE", kind).replace("MORE", more)
    small = "from hightide_agent.levers import chunked_loss\nchunked_loss.CHUNK = 1 << 19\n"  # five chunks
    plain, changed = observe(text), observe(text.replace("model = ", small + "model = "), env=plan(chunked_loss={}))
    assert facts(changed)["lever chunked_loss"] == (
        "a loss over 700 classes" if taken else "no cross entropy was computed"
    )
    assert len(norms(plain.out)) == 16 and "nan" not in plain.out
    assert norms(changed.out) == pytest.approx(norms(plain.out), rel=2e-2 if "bfloat16" in kind else 1e-4)
    assert (changed.out == plain.out) <= (not taken or "bfloat16" in kind)


def test_a_loss_in_chunks_keeps_less(observe: Any) -> None:
    """What is saved for the backward pass is the logits and a number for each row, and not their logarithms too."""
    text = (
        LOSS.replace("TYPE", "torch.float32")
        .replace("MORE", "")
        .replace("range(10)", "range(1)")
        .replace("F.cross_entropy(model(x), y, )", "saved(model(x), y)")
        + """
print(*numbers)
"""
    )
    saved = """
numbers = set()
def saved(logits, y):
    def keep(t):
        numbers.add((t.data_ptr() != logits.data_ptr()) * t.numel())
        return t
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        return F.cross_entropy(logits, y)
model = """
    text = text.replace("model = ", saved, 1)
    plain, changed = observe(text), observe(text, env=plan(chunked_loss={}))
    assert max(map(int, plain.out.splitlines()[-1].split())) == 900 * 700
    assert max(map(int, changed.out.splitlines()[-1].split())) == 900
