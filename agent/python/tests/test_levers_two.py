"""Levers in a program that trains two models: one of them has them, and the other stays as it is."""

from __future__ import annotations

import json
from typing import Any, Dict

import pytest

pytest.importorskip("torch")

GAN = """
import hashlib
import torch
from torch import nn
torch.manual_seed(0)

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.drop = nn.Linear(16, 16), nn.Dropout(0.2)

    def forward(self, x):
        return x + self.drop(self.mix(x).relu())

class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

class Critic(nn.Module):
    '''A part of it gets a gradient in every second step alone.'''

    def __init__(self):
        super().__init__()
        self.first, self.now_and_then, self.last = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 1)

    def forward(self, x, step):
        x = self.first(x).relu()
        return self.last(self.now_and_then(x) if step % 2 == 0 else x)

made_by, critic = Generator(), Critic()
OPTIMIZERS
for step in range(10):
    made = made_by(torch.randn(8, 16))
    loss = critic(torch.randn(8, 16), step).mean() - critic(made.detach(), step).mean()
    second.zero_grad(set_to_none=False)
    loss.backward()
    second.step()
    first.zero_grad(set_to_none=False)
    value = critic(made, step).mean()
    value.backward()
    first.step()
    print(loss.item().hex(), value.item().hex())
weights = [*made_by.parameters(), *critic.parameters()]
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in weights)).hexdigest())
"""
APART = """
first, second = (torch.optim.AdamW(m.parameters(), lr=1e-2) for m in (made_by, critic))
"""
TOGETHER = (
    GAN[: GAN.index("OPTIMIZERS")]
    + """
optimizer = torch.optim.AdamW([*made_by.parameters(), *critic.parameters()], lr=1e-2)
for step in range(10):
    value = critic(made_by(torch.randn(8, 16)), step).mean()
    optimizer.zero_grad(set_to_none=False)
    value.backward()
    optimizer.step()
    print(value.item().hex())
weights = [*made_by.parameters(), *critic.parameters()]
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in weights)).hexdigest())
"""
)


def plan(**levers: Any) -> Dict[str, str]:
    return {"HIGHTIDE_PLAN": json.dumps({"model": "Generator", "levers": levers})}


def facts(result: Any) -> Dict[str, Any]:
    return {record["key"]: record["value"] for record in result.main.all("fact")}


@pytest.mark.parametrize(
    "levers",
    [
        {"checkpoint": {"blocks": ["*"]}},
        {"set_to_none": {}},
        {"step_in_backward": {}},
        {"states_on_host": {}},
        {"checkpoint": {"blocks": ["*"]}, "foreach": {}, "set_to_none": {}, "step_in_backward": {}, "offload": {}},
    ],
)
def test_numbers_of_both_stay(observe: Any, levers: Dict[str, Any]) -> None:
    text = GAN.replace("OPTIMIZERS", APART)
    plain, changed = observe(text), observe(text, env=plan(**levers))
    told = facts(changed)
    assert told["plan"] == "applied"
    assert {"lever " + name for name in levers} <= set(told)
    assert changed.out == plain.out and len(plain.out.splitlines()) == 11
    assert told["plan left out"] == (
        "AdamW trains another model: levers of Generator and of its optimizer do not reach it"
    )


def test_one_optimizer_of_both(observe: Any) -> None:
    """Levers of the optimizer reach both models, those of a model one."""
    plain = observe(TOGETHER)
    changed = observe(TOGETHER, env=plan(set_to_none={}, foreach={}, step_in_backward={}, states_on_host={}))
    assert changed.out == plain.out and len(plain.out.splitlines()) == 11
    assert facts(changed)["plan left out"] == (
        "AdamW also trains parameters that are not of Generator: levers of a model reach Generator alone"
    )


def test_a_plan_without_a_lever_leaves_nothing_out(observe: Any) -> None:
    assert "plan left out" not in facts(observe(GAN.replace("OPTIMIZERS", APART), env=plan()))


@pytest.mark.parametrize(
    "levers",
    [{name: {"blocks": ["*"]} if name == "checkpoint" else {}}
     for name in ("checkpoint", "offload", "foreach", "set_to_none", "step_in_backward", "states_on_host", "bf16")],
)  # fmt: skip
def test_a_model_that_is_let_go_is_not_kept(observe: Any, levers: Dict[str, Any]) -> None:
    """What a lever knows of a model does not keep it alive."""
    text = (
        GAN.replace("OPTIMIZERS", APART)
        + """
import gc, weakref
first.zero_grad(set_to_none=True)
gone = weakref.ref(made_by.layers[0].mix.weight)
del made_by, first, made, value, loss, weights
gc.collect()
print("gone", gone() is None)
"""
    )
    assert "gone True" in observe(text).out
    assert "gone True" in observe(text, env=plan(**levers)).out


def test_lists_of_layers_are_blocks(observe: Any) -> None:
    """Where a model has nothing else that repeats."""
    begin, end = GAN.index("class Layer"), GAN.index("class Generator")
    layers = "def Layer():\n    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.2))\n\n"
    text = (GAN[:begin] + layers + GAN[end:]).replace("OPTIMIZERS", APART)
    plain, changed = observe(text), observe(text, env=plan(checkpoint={"blocks": ["layers.0", "layers.2"]}))
    assert facts(changed)["lever checkpoint"] == "2 of 3 blocks"
    assert changed.out == plain.out and len(plain.out.splitlines()) == 11


ROOT = """
import torch
from torch import nn

torch.manual_seed(3)
layers = [nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.2)) for _ in range(3)]
model = nn.Sequential(*layers, nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 16)).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def test_a_model_that_is_a_list_of_layers_has_blocks(observe: Any) -> None:
    """Members of the model itself, where it is a Sequential."""
    levers = {"checkpoint": {"blocks": ["0", "2"]}}
    plain, changed = observe(ROOT), observe(ROOT, env={"HIGHTIDE_PLAN": json.dumps({"levers": levers})})
    assert facts(changed)["lever checkpoint"] == "2 of 3 blocks"
    assert changed.out == plain.out and len(plain.out.splitlines()) == 5
