"""States of 8 bits and adapters: the training goes on, its loss falls, and less is kept for the optimizer."""

from __future__ import annotations

import json
from typing import Any, Dict

import pytest

torch = pytest.importorskip("torch")

TRAIN = """
import sys
import torch
from torch import nn

torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))

    def forward(self, x):
        return x + self.mix(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.last = nn.Linear(64, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.last(x)

model = Net()
BEFORE
optimizer = OPTIMIZER
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.5)
STATES
x, y = torch.randn(128, 64), torch.randint(0, 4, (128,))
for step in range(40):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    AFTER
    STEP
    schedule.step()
    print(loss.item())
states = [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
trained = [p for p in model.parameters() if p.requires_grad]
print(sum(t.nbytes for t in states), sum(p.numel() for p in trained), sum(p.grad is not None for p in trained))
torch.save((model.state_dict(), optimizer.state_dict()), sys.argv[0] + ".pt")
"""
GROUPS = """torch.optim.AdamW([
    {"params": [p for p in model.parameters() if p.dim() > 1]},
    {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}], lr=3e-3)"""


def script(
    optimizer: str = GROUPS, before: str = "", states: str = "", after: str = "pass", step: str = "optimizer.step()"
) -> str:
    text = TRAIN.replace("OPTIMIZER", optimizer).replace("BEFORE", before).replace("STATES", states)
    return text.replace("AFTER", after).replace("STEP", step)


def plan(**levers: Any) -> Dict[str, str]:
    return {"HIGHTIDE_PLAN": json.dumps({"model": "Net", "levers": levers})}


def facts(result: Any) -> Dict[str, Any]:
    return {record["key"]: record["value"] for record in result.main.all("fact")}


def figures(result: Any) -> Any:
    """The first and the last loss; bytes of states, numbers that are trained, gradients."""
    lines = result.out.splitlines()
    return (float(lines[0]), float(lines[-2])), [int(n) for n in lines[-1].split()]


@pytest.mark.parametrize("more", [{"step_in_backward": {}}, {"checkpoint": {"blocks": ["*"]}, "foreach": {}}])
def test_states_of_8_bits(observe: Any, more: Dict[str, Any]) -> None:
    """The loss falls as it does with 32 bits, and states take a byte a number and 8 for each 256."""
    pytest.importorskip("bitsandbytes")
    (first, last), (states, numbers, _) = figures(observe(script()))
    changed = observe(script(), env=plan(states_8bit={}, **more))
    (first8, last8), (states8, numbers8, gradients8) = figures(changed)
    assert facts(changed)["lever states_8bit"] == "of AdamW"
    assert (first8, numbers8, states > 8 * numbers) == (first, numbers, True)
    large, maps = 6 * 64 * 128, 6 * 2 * 256 * 4  # six weights have 4096 numbers or more; two maps, shared by all
    assert states8 - maps == 2 * large + 8 * large // 256 + 8 * (numbers - large)
    assert last < 0.2 * first and last8 < 0.2 * first, (last, last8)
    assert last8 != last and gradients8 == (0 if "step_in_backward" in more else 14)


def test_adapters_in_place_of_weights(observe: Any) -> None:
    pytest.importorskip("peft")
    (first, _), (states, numbers, _) = figures(observe(script()))
    changed = observe(script(), env=plan(lora={}, foreach={}, checkpoint={"blocks": ["*"]}))
    (first2, last2), (states2, numbers2, gradients2) = figures(changed)
    adapters = 6 * 8 * (64 + 128)
    assert facts(changed)["lever lora"] == "%d numbers of 6 layers are trained, in place of %d" % (adapters, numbers)
    assert (first2, numbers2, gradients2) == (first, adapters, 12), "adapters begin as nothing, and all are trained"
    assert states2 < states / 4 and states2 == 8 * adapters + 4 * 12  # a step's number for each
    assert last2 < 0.7 * first, last2


def test_adapters_with_states_of_8_bits(observe: Any) -> None:
    """Both change the optimizer."""
    pytest.importorskip("peft")
    pytest.importorskip("bitsandbytes")
    (first, last), _ = figures(changed := observe(script(), env=plan(lora={}, states_8bit={})))
    assert facts(changed)["plan"] == "applied" and last < 0.7 * first


@pytest.mark.parametrize(
    ("lever", "changes", "why"),
    [
        ("states_8bit", {"optimizer": "torch.optim.SGD(model.parameters(), lr=0.1)"}, "SGD has no twin of 8 bits"),
        ("states_8bit", {"optimizer": "torch.optim.AdamW(model.parameters(), amsgrad=True)"},
         "AdamW is amsgrad, which bitsandbytes does not know"),
        ("states_8bit", {"optimizer": "torch.optim.Adam(model.parameters(), weight_decay=0.1)"},
         "Adam adds its weight decay to the gradients"),
        ("states_8bit", {"states": "model(torch.ones(1, 64)).sum()\noptimizer.load_state_dict(optimizer.state_dict())",
                         "after": "optimizer.load_state_dict(optimizer.state_dict()) if step == 2 else None"},
         "the program loads states of AdamW after its first step"),
        ("lora", {"before": "model.blocks = nn.ModuleList()"}, "Net has no linear layers in repeated blocks"),
        ("lora", {"before": "model = torch.nn.DataParallel(model)"}, "Net is wrapped by what knows its parameters"),
        ("lora", {"before": "for n in range(3): model.blocks[n].mix = nn.TransformerEncoderLayer(64, 4, 128)"},
         "TransformerEncoderLayer computes with the weight of blocks.0.mix.linear1 itself"),
    ],
)  # fmt: skip
def test_refused_by_name(observe: Any, lever: str, changes: Dict[str, str], why: str) -> None:
    pytest.importorskip({"lora": "peft", "states_8bit": "bitsandbytes"}[lever])
    result = observe(script(**changes), env=plan(**{lever: {}}), ok=False)
    assert result.code == 3
    assert facts(result)["plan refused"].startswith("%s: %s" % (lever, why)), facts(result)


@pytest.mark.parametrize("lever", ["states_8bit", "lora"])
def test_states_that_are_there_already(observe: Any, lever: str) -> None:
    """As of a checkpoint that was loaded: they would be of no use to the new parameters, or of another kind."""
    pytest.importorskip({"lora": "peft", "states_8bit": "bitsandbytes"}[lever])
    made = "for p in model.parameters(): p.grad = torch.zeros_like(p)\noptimizer.step()"
    result = observe(script(states=made), env=plan(**{lever: {}}), ok=False)
    assert (
        result.code == 3
        and result.out == ""
        and "has states already" in facts(result)["plan refused"].replace("the optimizer has", "has")
    )


def test_levers_that_do_not_go_together(observe: Any) -> None:
    pytest.importorskip("peft")
    for levers, why in (
        ({"states_8bit": {}, "states_on_host": {}}, "states_8bit: states_on_host moves states of 32 bits"),
        ({"lora": {}, "step_in_backward": {}}, "lora: step_in_backward has hooks on all parameters"),
    ):
        result = observe(script(), env=plan(**levers), ok=False)
        assert result.code == 3 and result.out == "" and facts(result)["plan refused"].startswith(why)
