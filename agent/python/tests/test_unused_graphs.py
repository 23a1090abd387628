"""Forward passes that save for a backward pass that never comes."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest

from ring import Ring

pytest.importorskip("torch", reason="needs PyTorch: run with the project's torch environment")

PROGRAM = """
import torch
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
sgd = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(8, 16)
def train(steps=3, passes=1):
    for _ in range(steps):
        sgd.zero_grad()
        sum(model(x).pow(2).mean() for _ in range(passes)).backward()
        sgd.step()
"""
KEPT = "train()\nouts = [model(x) for _ in range(6)]\nouts = None\ntrain()\n"


def told(ring: Ring) -> List[Dict[str, Any]]:
    """The last word on each line."""
    last = {record["line"]: record for record in ring.all("unused_graphs")}
    return list(last.values())


def test_an_evaluation_with_gradients_is_told(observe: Any) -> None:
    [line] = told(observe(PROGRAM + KEPT).main)
    assert line["count"] >= 6 and line["items"] >= 6 and line["used"] == 0, line
    assert (line["class"], line["kind"]) == ("Sequential", "train")


def test_eval_alone_keeps_graphs_too(observe: Any) -> None:
    text = "train()\nmodel.eval()\nfor _ in range(9): model(x).argmax(1)\nmodel.train()\ntrain()\n"
    [line] = told(observe(PROGRAM + text).main)
    assert line["count"] >= 8 and line["items"] == 1 and line["kind"] == "eval", line


CLEAN = {
    "no_grad": "train()\nwith torch.no_grad(): outs = [model(x) for _ in range(6)]\ntrain()\n",
    "one backward for many passes": "train(passes=9)\n",
    "gradients of inputs": "x.requires_grad_()\nouts = [model(x).sum() for _ in range(9)]\n"
                           "for out in outs: torch.autograd.grad(out, x)\n",
    "only one of two outputs is used": """
class Two(nn.Module):
    def __init__(self): super().__init__(); self.one, self.two = nn.Linear(16, 4), nn.Linear(16, 4)
    def forward(self, x): return {"one": self.one(x), "deep": [self.two(x)]}
model = Two()
sgd = torch.optim.SGD(model.parameters(), lr=0.01)
model.train()
sum(model(x)["deep"][0].sum() for _ in range(9)).backward()
sgd.step()
""",
    "a view is changed in place": """
class View(nn.Module):
    def __init__(self): super().__init__(); self.one = nn.Linear(16, 4)
    def forward(self, x): return self.one(x).view(-1)
model = View()
sgd = torch.optim.SGD(model.parameters(), lr=0.01)
model.train()
outs = [model(x) for _ in range(9)]
for out in outs: out -= 1
sum(out.pow(2).sum() for out in outs).backward()
sgd.step()
""",
    "the loss is an attribute": """
class Keeps(nn.Module):
    def __init__(self): super().__init__(); self.one = nn.Linear(16, 4)
    def forward(self, x): out = self.one(x); self.loss = out.pow(2).sum(); return out.detach() + self.one(x)
model = Keeps()
sgd = torch.optim.SGD(model.parameters(), lr=0.01)
model.train()
for _ in range(9):
    sgd.zero_grad()
    out = model(x)
    model.loss.backward()
    sgd.step()
""",
    "checkpointed": """
from torch.utils.checkpoint import checkpoint
sgd.zero_grad()
sum(checkpoint(model, x, use_reentrant=False).pow(2).mean() for _ in range(9)).backward()
sgd.step()
""",
}  # fmt: skip


@pytest.mark.parametrize("case", CLEAN)
def test_what_is_used_is_not_told(observe: Any, case: str) -> None:
    assert told(observe(PROGRAM + CLEAN[case]).main) == []


def test_a_line_that_trains_and_evaluates(observe: Any) -> None:
    """The engine tells by both counts: of a line that is used each time, a broken step leaves few."""
    text = "def forward(): return model(x)\ndef step(): sgd.zero_grad(); forward().mean().backward(); sgd.step()\n"
    text += "for _ in range(4): step()\nouts = [forward() for _ in range(20)]\nouts = None\nstep()\n"
    [line] = told(observe(PROGRAM + text).main)
    assert line["count"] >= 20 and line["used"] >= 3, line
