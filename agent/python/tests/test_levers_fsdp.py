"""The lever fsdp: a training of one process as two ranks, with the same numbers within the rounding of the sum."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List

import pytest
import torch

TRAIN = """
import os, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

    def forward(self, x):
        return x + self.mix(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)

model = MODEL
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = TensorDataset(torch.randn(SAMPLES, 16), torch.randint(10, (SAMPLES,)))
loader = DataLoader(data, batch_size=32, shuffle=True)
tell = lambda *words: os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # a line at once, of each rank
BEFORE
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    tell("loss", loss.item(), norm.item())
AFTER
"""
SAVED = """
model.eval()
with torch.no_grad():
    tell("held", sum(nn.functional.cross_entropy(model(x), y).item() for x, y in DataLoader(data, batch_size=50)))
model.train()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
last = torch.load("last.pt")
kept = last["model"]["head.weight"], last["optimizer"]["state"][0]["exp_avg"]
assert type(kept[0]) is type(kept[1]) is torch.Tensor
tell("kept", *[t.double().sum().item() for t in kept])
model.load_state_dict(last["model"])
optimizer.load_state_dict(last["optimizer"])
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tell("again", loss.item())
"""
TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
NEW = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 9)


def script(model: str = "Net()", before: str = "", after: str = "", samples: int = 320) -> str:
    text = TRAIN.replace("MODEL", model).replace("BEFORE", before).replace("AFTER", after)
    return text.replace("SAMPLES", str(samples))


def plan(**more: Any) -> Dict[str, str]:
    levers = {"fsdp": {"ranks": 2}, **more}
    return {"HIGHTIDE_PLAN": json.dumps({"levers": levers}), "CUDA_VISIBLE_DEVICES": ""}


def figures(out: str, name: str) -> List[List[float]]:
    """The numbers of each line of that name, in order."""
    return [[float(n) for n in line.split()[1:]] for line in out.splitlines() if line.startswith(name + " ")]


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-5 * max(1.0, abs(b))


def told(result: Any, key: str) -> List[str]:
    return [r["value"] for ring in result.rings for r in ring.all("fact") if r["key"] == key]


@pytest.mark.skipif(not NEW, reason="fully_shard of this PyTorch does not run on the CPU")
@pytest.mark.parametrize("more", [{}, {"checkpoint": {"blocks": ["*"]}, "foreach": {}, "set_to_none": {}}])
def test_two_ranks_train_as_one_process(observe: Any, more: Dict[str, Any]) -> None:
    """Ten losses and norms, an evaluation, what is saved, and ten steps from it."""
    whole = observe(script(after=SAVED), env={"CUDA_VISIBLE_DEVICES": ""})
    ranks = observe(script(after=SAVED), env=plan(**more), options=TWO)
    assert told(ranks, "lever fsdp") == ["3 blocks over 2 ranks"] * 2
    assert len(told(ranks, "plan")) == 2
    for name, count in (("loss", 10), ("again", 10), ("held", 1), ("kept", 1)):
        one, two = figures(whole.out, name), figures(ranks.out, name)
        assert len(one) == count and len(two) == 2 * count, ranks.out
        for step, (alone, *further) in enumerate(one):
            pair = two[2 * step], two[2 * step + 1]
            mean = sum(values[0] for values in pair) / 2
            assert close(mean, alone), (name, step, pair, alone)
            assert (pair[0][0] != pair[1][0]) == (name in ("loss", "again")), "each rank has a slice of its own"
            assert all(close(n, m) for values in pair for n, m in zip(values[1:], further)), (name, step, pair)


REFUSED = [
    ({"samples": 319}, {}, "the last batch of 31 samples: 2 ranks would have unlike slices"),
    ({"before": "mine = list(model.parameters())"}, {}, "the program keeps parameters of Net in a list of its own"),
    ({"model": "nn.Sequential(nn.BatchNorm1d(16), Net())"}, {}, "0 is a batch norm, which would see a slice alone"),
    ({"before": "loader = [next(iter(loader))]; next(iter(DataLoader(data, 32)))"}, {}, "the program took 2 batches"),
    ({"before": "loader = [(torch.ones(4, 16), torch.ones(4).long())]"}, {}, "the program took 0 batches"),
    ({"before": "torch.manual_seed(os.getpid()); loader = DataLoader(data, 32, shuffle=True)"}, {},
     "ranks draw unlike batches"),
    ({"model": "torch.compile(Net(), backend='eager')"}, {}, "Net is compiled"),
    ({"before": "model.head.weight.register_hook(lambda g: g)"}, {}, "head.weight has a hook"),
    ({"model": "Net()\nmodel.head.weight = model.blocks[0].mix[1].weight"}, {}, "is a parameter of two parts"),
    ({"before": "torch.distributed.init_process_group('gloo')"}, {}, "the program makes a process group itself"),
    ({"before": "scaler = torch.amp.GradScaler('cpu')"}, {},
     "a gradient scaler looks at the gradients of a rank alone"),
    ({"before": "optimizer.load_state_dict({**optimizer.state_dict(), 'state': {0: {'step': torch.ones(1)}}})"}, {},
     "the optimizer has states already"),
    ({}, {"fsdp": {"ranks": 3}}, "this process is not one of 3 ranks"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "levers", "why"), REFUSED)
def test_what_would_not_be_the_same_training_is_refused(
    observe: Any, changes: Dict[str, Any], levers: Dict[str, Any], why: str
) -> None:
    """Before the first step, in both ranks or in the first that sees it."""
    ended = observe(script(**changes), env=plan(**levers), options=TWO, ok=False)
    said = told(ended, "plan refused")
    assert ended.code != 0 and "loss" not in ended.out
    assert said and all(re.search(re.escape(why), text) and text.startswith("fsdp: ") for text in said), said


def test_one_process_is_no_rank(observe: Any) -> None:
    ended = observe(script(), env=plan(), ok=False)
    assert ended.code == 3 and ended.out == ""
    assert told(ended, "plan refused") == ["fsdp: this process is not one of 2 ranks that were started for it"]


UNLIKE = """
import os
import torch.distributed
from hightide_agent.levers import fsdp

fsdp.install(lambda name, call: None, torch, None, None)
try:
    fsdp._alike(torch.distributed, DEVICE, "batch")
except fsdp.Refused as error:
    os.write(1, ("refused %s\\n" % error).encode())
"""


@pytest.mark.parametrize(("device", "refused"), [("['cuda', 'cpu'][fsdp.slicing.rank]", 2), ("'cuda'", 0)])
def test_a_rank_without_its_gpu_is_refused_in_all(observe: Any, device: str, refused: int) -> None:
    """By what the ranks tell one another: no GPU is needed for that."""
    ended = observe(UNLIKE.replace("DEVICE", device), env={"CUDA_VISIBLE_DEVICES": ""}, options=TWO)
    assert ended.out.splitlines() == ["refused a rank has no GPU: there are fewer than 2"] * refused
