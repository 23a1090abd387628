"""A step that runs out of memory is done again in micro-batches, and gradients are those of the whole batch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parents[1] / "src"))
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import hightide  # noqa: E402

SHORT = "CUDA out of memory. Tried to allocate 3.07 GiB. GPU 0 has a total capacity of 21.99 GiB"


def gradients(model: Any) -> List[Any]:
    return [p.grad.clone() for p in model.parameters()]


class Net(nn.Module):
    """Takes at most so many samples at once, and runs out of memory in the forward or in the backward pass."""

    def __init__(self, most: int = 1 << 30, backward: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 5))
        self.most, self.backward = most, backward
        self.seen: List[int] = []

    def forward(self, x: Any) -> Any:
        self.seen.append(len(x))
        if len(x) > self.most and not self.backward:
            raise torch.OutOfMemoryError(SHORT)
        hidden = self.layers[:2](x)
        if len(x) > self.most:
            hidden.register_hook(self._short)  # the last layer has its gradients by then
        return self.layers[2:](hidden)

    def _short(self, _: Any) -> None:
        raise torch.OutOfMemoryError(SHORT)


@pytest.mark.skipif(not hasattr(torch, "OutOfMemoryError"), reason="needs torch.OutOfMemoryError, of PyTorch 2.5")
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("mean", [True, False])
def test_gradients_are_those_of_the_whole_batch(mean: bool, backward: bool) -> None:
    x, y = torch.randn(13, 8), torch.randint(0, 5, (13,))
    plain, short = Net(), Net(most=4, backward=backward)

    def loss_of(model: Any, batch: Any) -> Any:
        loss = F.cross_entropy(model(batch["x"]), batch["y"], reduction="mean" if mean else "sum")
        loss.backward()
        return {"loss": loss, "samples": batch["x"]}

    want = loss_of(plain, {"x": x, "y": y})
    step = hightide.rescue(lambda batch: loss_of(short, batch), mean=mean)
    got = step({"x": x, "y": y})
    assert step.parts == 4 and short.seen == [13, 7, 4, 4, 4, 1]
    torch.testing.assert_close(got["loss"], want["loss"].detach())
    assert torch.equal(got["samples"], x)
    for mine, theirs in zip(gradients(short), gradients(plain)):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    short.zero_grad()
    short.seen.clear()
    step({"x": x, "y": y})
    assert short.seen == [4, 4, 4, 1]  # remembered
    if mean:  # a weight that does not count would be seen: the parts are not equal
        assert not torch.allclose(gradients(short)[0], 4 * gradients(plain)[0])


@pytest.mark.skipif(not hasattr(torch, "OutOfMemoryError"), reason="needs torch.OutOfMemoryError, of PyTorch 2.5")
def test_what_cannot_be_rescued_is_raised() -> None:
    model = Net(most=4, backward=True)

    @hightide.rescue
    def step(x: Any) -> Any:
        loss = model(x).square().mean()
        loss.backward()
        return loss

    small = torch.randn(4, 8)
    step(small)
    before = gradients(model)
    with pytest.raises(torch.OutOfMemoryError):  # it had added to gradients that were there
        step(torch.randn(9, 8))
    assert step.parts == 1 and any(not torch.equal(a, b) for a, b in zip(gradients(model), before))
    model.zero_grad()
    model.most = 0
    with pytest.raises(torch.OutOfMemoryError):  # not even one sample
        step(small)
    with pytest.raises(ValueError, match="no module"):
        hightide.rescue(lambda x: x)


RANK = """
import sys
import torch
from torch import nn
import hightide
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=2)
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 2))

@hightide.rescue(model=model)
def step(x):
    if sys.argv[2] == "0":
        raise RuntimeError("CUDA out of memory. Tried to allocate 3.07 GiB.")
    return None

try:
    step(torch.randn(4, 8))
    print("done in", step.parts)
except RuntimeError as error:
    print(str(error)[:18], "in", step.parts)
"""


def test_one_of_two_ranks_is_not_rescued(tmp_path: Path) -> None:
    """In more passes than the other rank makes, it would wait for that one for ever."""
    source = str(Path(__file__).parents[1] / "src")
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(tmp_path / "store"), rank], stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONPATH": source})
        for rank in "01"
    ]  # fmt: skip
    assert [rank.communicate()[0] for rank in ranks] == ["CUDA out of memory in 1\n", "done in 1\n"]


def test_another_error_passes() -> None:
    model = Net()
    calls = []

    @hightide.rescue
    def step(x: Any) -> None:
        calls.append(model)
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        step(torch.randn(4, 8))
    assert len(calls) == 1


SHORT_OF_MEMORY = """
import resource
import torch
torch.set_num_threads(1)
"""

OWN_STEP = (
    SHORT_OF_MEMORY
    + """
import sys
sys.path.insert(0, "PACKAGE")
import hightide
from torch import nn

model = nn.Sequential(nn.Linear(8, 4096), nn.GELU(), nn.GELU(), nn.Linear(4096, 1))

def plain(x):
    loss = model(x).square().mean()
    loss.backward()
    return loss

x = torch.randn(16384, 8)
for part in x.split(1024):
    (model(part).square().mean() * len(part) / len(x)).backward()
want = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
resource.setrlimit(resource.RLIMIT_DATA, (HELD + (600 << 20),) * 2)
step = hightide.rescue(plain)
for _ in range(2):
    model.zero_grad()
    step(x)
worst = max(float((p.grad - w).abs().max() / w.abs().max()) for p, w in zip(model.parameters(), want))
print(step.parts >= 2, worst < 1e-4)
"""
)
HELD = "int(open('/proc/self/status').read().split('VmData:')[1].split()[0]) * 1024"


def test_host_memory_that_is_short_indeed(observe: Any) -> None:
    """The kernel refuses memory: the step is rescued, and each rescue is a record."""
    package = str(Path(__file__).parents[1] / "src")
    result = observe(OWN_STEP.replace("PACKAGE", package).replace("HELD", HELD))
    assert result.out.split() == ["True", "True"]
    told = result.main.all("rescue")
    assert len(told) == 1 and told[0]["count"] >= 2 and told[0]["device"] == "cpu"


TRAINER = (
    SHORT_OF_MEMORY
    + """
import tempfile
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
config = GPT2Config(vocab_size=30000, n_embd=32, n_layer=1, n_head=2, n_positions=128)
rows = [torch.randint(0, 30000, (128,)) for _ in range(32)]
data = [{"input_ids": row, "labels": row} for row in rows]
model = GPT2LMHeadModel(config)
losses = []

class Kept(transformers.TrainerCallback):
    def on_log(self, args, state, control, logs=None, **more):
        losses.append(logs.get("loss"))

    def on_step_begin(self, args, state, control, **more):
        LIMIT

with tempfile.TemporaryDirectory() as folder:
    Trainer(model, TrainingArguments(folder, per_device_train_batch_size=32, max_steps=1, logging_steps=1, report_to=[],
            save_strategy="no", use_cpu=True, disable_tqdm=True), train_dataset=data, callbacks=[Kept()]).train()
print("loss", round(float(losses[0]), 3))
"""
)


def test_the_trainers_step_is_rescued(observe: Any) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    limit = "resource.setrlimit(resource.RLIMIT_DATA, (%s + (700 << 20),) * 2)" % HELD
    plain = observe(TRAINER.replace("LIMIT", "pass"))
    short = observe(TRAINER.replace("LIMIT", limit), ok=False)
    rescued = observe(TRAINER.replace("LIMIT", limit), env={"HIGHTIDE_RESCUE": "1"})
    words = [line for line in rescued.out.splitlines() if line.startswith("loss")]
    assert short.code != 0 and "allocate memory" in short.err
    assert words and words == [line for line in plain.out.splitlines() if line.startswith("loss")]
    assert rescued.main.all("rescue")
    facts = {record["key"]: record["value"] for record in rescued.main.all("fact")}
    assert facts["rescue"] == "the Trainer of transformers"


RESUMED = """
import sys
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

config = GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=2, n_positions=8)
data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)}] * 8
begun = []

class Kept(transformers.TrainerCallback):
    def on_train_begin(self, args, state, control, **more):
        begun.append(state.global_step)

arguments = TrainingArguments(sys.argv[1], per_device_train_batch_size=2, max_steps=int(sys.argv[2]),
                              save_strategy="steps", save_steps=1, report_to=[], use_cpu=True, disable_tqdm=True)
Trainer(GPT2LMHeadModel(config), arguments, train_dataset=data, callbacks=[Kept()]).train(*eval(sys.argv[3]))
print("begun at", begun[0])
"""


@pytest.mark.parametrize(
    ("env", "arguments", "begun"),
    [
        ({"HIGHTIDE_RETRY": "1", "HIGHTIDE_RETRY_SINCE": "1"}, "[]", 2),
        ({"HIGHTIDE_RETRY": "1", "HIGHTIDE_RETRY_SINCE": str(1 << 62)}, "[]", 0),  # it is of another training
        ({"HIGHTIDE_RETRY": "1", "HIGHTIDE_RETRY_SINCE": "1"}, "[False]", 0),  # the program says so itself
        ({}, "[]", 0),
    ],
)
def test_the_trainer_goes_on_where_it_is_started_again(
    observe: Any, tmp_path: Path, env: Any, arguments: str, begun: int
) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    folder = str(tmp_path / "checkpoints")
    assert observe(RESUMED, folder, "2", "[]").out.split()[-1] == "0"
    again = observe(RESUMED, folder, "3", arguments, env=env)
    assert [line for line in again.out.splitlines() if line.startswith("begun")] == ["begun at %d" % begun]
    told = {record["key"]: record["value"] for record in again.main.all("fact")}
    assert told.get("resumed") == ("checkpoint-2" if begun else None)
