"""Levers in real trainings: losses and weights stay the same bit for bit, or the program ends before it trains."""

from __future__ import annotations

import json
from typing import Any, Dict

import pytest

torch = pytest.importorskip("torch")

TRAIN = """
import copy, hashlib, io, os, random
import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)

class Block(nn.Module):
    '''Dropout, a generator of Python's, running statistics, a counter: all that a second pass could spoil.'''

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.2), nn.Linear(2 * width, width))
        self.statistics = nn.BatchNorm1d(width)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, *, scale=1.0):
        self.calls += 1
        x = x + self.mix(self.norm(x)) * scale
        if random.random() < 0.3:
            x = x * 1.01
        return self.statistics(x)

class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.first = nn.Linear(8, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(4))
        self.idle = nn.Linear(3, 3)  # gets a gradient in the first step alone
        self.last = nn.Linear(width, 1)

    def forward(self, x, step):
        x = self.first(x)
        for block in self.blocks:
            x = block(x, scale=0.5)
        return self.last(x) + (self.idle.weight.sum() if step == 0 else 0)

MODEL
OPTIMIZER
digest = hashlib.sha256()
for step in range(10):
    loss = model(torch.randn(16, 8), step).square().mean()
    optimizer.zero_grad(set_to_none=ZERO)
    loss.backward()
    AFTER
    digest.update(loss.detach().numpy().tobytes())
    optimizer.step()
for name, tensor in model.state_dict().items():
    digest.update(name.encode() + tensor.numpy().tobytes())
torch.save(model.state_dict(), io.BytesIO())
copied = copy.deepcopy(model)
assert copied.blocks[0](torch.ones(2, 24)).requires_grad
print(digest.hexdigest(), random.random(), torch.rand(()).item())
"""
ALL = ["blocks.0", "blocks.1", "blocks.2", "blocks.3"]


def script(
    model: str = "model = Net()", optimizer: str = "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)",
    after: str = "pass", zero: str = "True",
) -> str:  # fmt: skip
    return TRAIN.replace("MODEL", model).replace("OPTIMIZER", optimizer).replace("AFTER", after).replace("ZERO", zero)


def plan(**levers: Any) -> Dict[str, str]:
    return {"HIGHTIDE_PLAN": json.dumps({"model": "Net", "levers": levers})}


def facts(result: Any) -> Dict[str, Any]:
    return {record["key"]: record["value"] for record in result.main.all("fact")}


@pytest.mark.parametrize(
    "levers",
    [
        {"checkpoint": {"blocks": ["blocks.1"]}},
        {"checkpoint": {"blocks": ALL}},
        {"foreach": {}},
        {"set_to_none": {}},
        {"offload": {}},
        {"step_in_backward": {}},
        {"states_on_host": {}},
        {
            "checkpoint": {"blocks": ["*"]},
            "foreach": {},
            "set_to_none": {},
            "step_in_backward": {},
            "offload": {},
            "states_on_host": {},
        },
    ],
)
@pytest.mark.parametrize("zero", ["True", "False"])
def test_numbers_stay_bit_for_bit(observe: Any, levers: Dict[str, Any], zero: str) -> None:
    plain = observe(script(zero=zero))
    changed = observe(script(zero=zero), env=plan(**levers))
    assert facts(changed)["plan"] == "applied"
    assert {"lever " + name for name in levers} <= set(facts(changed))
    assert changed.out == plain.out


@pytest.mark.parametrize("more", [{}, {"step_in_backward": {}}])
@pytest.mark.parametrize(
    "kind",
    ["SGD(model.parameters(), lr=1e-2, momentum=0.9)", "RMSprop(model.parameters(), centered=True)",
     "Adam(model.parameters(), amsgrad=True)"],
)  # fmt: skip
@pytest.mark.parametrize("step", ["step()", "step(lambda: loss)"])
def test_states_go_to_the_host_and_come_back(observe: Any, more: Dict[str, Any], kind: str, step: str) -> None:
    """On the CPU they are there already. Here they are copied all the same: what comes back is computed with."""
    text = script(optimizer="optimizer = torch.optim." + kind).replace("optimizer.step()", "optimizer." + step)
    copied = """
from hightide_agent.levers import states_on_host
states_on_host.OnHost.moves = lambda self, parameter, value: getattr(value, "shape", None) == parameter.shape
"""
    changed = observe(text.replace("\nmodel =", copied + "model =", 1),
                      env=plan(states_on_host={}, **more))  # fmt: skip
    assert facts(changed)["moved state bytes"] > 0
    assert changed.out == observe(text).out


BUDGET = """
import hashlib
import torch
from torch import nn
torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.b, self.drop = nn.LayerNorm(16), nn.Linear(16, 64), nn.Linear(64, 16), nn.Dropout(DROP)

    def forward(self, x):
        return x + self.drop(self.b(nn.functional.gelu(self.a(self.norm(x)))))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

net = Net()
model = torch.compile(net, backend="aot_eager")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
kept = set()
for step in range(10):
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
        loss = model(torch.randn(8, 16)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.add(sum(saved))
    print(loss.item().hex())
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest())
import sys
print(max(kept), file=sys.stderr)
"""


KEEPS = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 9)


@pytest.mark.parametrize("drop", ["0.0", "0.1"])
@pytest.mark.parametrize("budget", [0.6, 0.3, 0.05])
def test_a_budget_of_the_compiler_keeps_less_and_the_same_numbers(observe: Any, drop: str, budget: float) -> None:
    """Also where dropout draws: what was drawn is kept."""
    text = BUDGET.replace("DROP", drop)
    plain, changed = observe(text), observe(text, env=plan(compile_budget={"budget": budget}), ok=drop == "0.0")
    if "draws random numbers" in facts(changed).get("plan refused", ""):
        assert changed.code == 3 and changed.out == "" and not KEEPS
        return
    assert facts(changed)["lever compile_budget"] == "compiled graphs may keep %g of their activations" % budget
    assert changed.out == plain.out and len(plain.out.splitlines()) == 11
    assert int(changed.err.split()[-1]) < int(plain.err.split()[-1]), "less is saved for the backward pass"


RANKS = """
import os, subprocess, sys
if "RANK" not in os.environ:  # the first of two ranks starts the other
    os.environ.update(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", STORE="%s.%d" % (__file__, os.getpid()))
    other = subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": "1", "LOCAL_RANK": "1"},
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
import torch
from torch import nn
rank = int(os.environ["RANK"])
torch.set_num_threads(1)
torch.manual_seed(0)
store = torch.distributed.FileStore(os.environ["STORE"], 2)
torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 16))

    def forward(self, x):
        return x + self.mix(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

def flat(model):
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True,
                                    device_id=torch.device("cpu"))

def sharded(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)

model = WRAP(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(rank)
for step in range(5):
    loss = model(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
torch.distributed.destroy_process_group()
"""
SAFE: Dict[str, Any] = {"checkpoint": {"blocks": ["blocks.0", "blocks.2"]}, "foreach": {}, "set_to_none": {}}
GATHERED = "gradients of several processes are put together before the step"


@pytest.mark.parametrize(
    ("wrap", "levers", "refused"),
    [
        ("nn.parallel.DistributedDataParallel", {**SAFE, "offload": {}}, {"step_in_backward": GATHERED}),
        ("sharded", SAFE, {"offload": "parameters of FSDPNet are gathered"}),
        ("flat", SAFE, {"offload": "parameters of Net are gathered"}),
    ],
)
def test_on_two_ranks_numbers_stay_or_a_lever_is_refused(
    observe: Any, wrap: str, levers: Dict[str, Any], refused: Dict[str, str]
) -> None:
    text = RANKS.replace("WRAP", wrap)
    plain = observe(text, fresh=True, ok=False)
    if any(why in plain.err for why in ("'Stream' object has no attribute", "cannot import name 'fully_shard'")):
        pytest.skip("fully_shard of this PyTorch does not run on the CPU")
    assert plain.code == 0 and len(plain.out.splitlines()) == 5
    changed = observe(text, env={"HIGHTIDE_PLAN": json.dumps({"levers": levers})}, fresh=True)
    assert changed.out == plain.out
    told = [{r["key"]: r["value"] for r in ring.all("fact")} for ring in changed.rings]
    assert sum({"lever " + name for name in levers} <= set(of_rank) for of_rank in told) == 2, "both ranks have them"
    for name, why in refused.items():
        ended = observe(text, env={"HIGHTIDE_PLAN": json.dumps({"levers": {name: {}}})}, fresh=True, ok=False)
        assert ended.code == 3 and ended.out == ""
        assert facts(ended)["plan refused"].startswith("%s: %s" % (name, why))


COMPILED = """
import torch
from torch import nn
from torch._dynamo.utils import counters

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3))

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        if BREAKS:
            torch._dynamo.graph_break()
        return x.relu()

net = Net()
model = torch.compile(net, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for size in (4, 4, 6, 7):
    model(torch.ones(size, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(counters["stats"]["unique_graphs"], counters["frames"]["ok"], dict(counters["graph_break"]))
"""


@pytest.mark.parametrize(("breaks", "levers"), [("True", {}), ("False", {}), ("False", {"foreach": {}})])
def test_a_plan_compiles_the_same_graphs(observe: Any, breaks: str, levers: Dict[str, Any]) -> None:
    """Also of a model that was compiled before the plan is applied, which is once."""
    text = COMPILED.replace("BREAKS", breaks)
    plain = observe(text)
    changed = observe(text, env=plan(**levers))
    assert facts(changed)["plan"] == "applied"
    assert int(plain.out.split()[0]) >= (2 if breaks == "True" else 1)
    assert changed.out == plain.out


def test_a_second_pass_has_teeth(observe: Any) -> None:
    """What the lever keeps is what a plain checkpoint would spoil: the same training by hand has other numbers."""
    by_hand = """model = Net()
from torch.utils.checkpoint import checkpoint
for block in model.blocks:
    block.forward = lambda x, scale, own=block.forward: checkpoint(own, x, scale=scale, use_reentrant=False)"""
    assert (
        observe(script(model=by_hand).replace("copied = ", "#").replace("assert copied", "#")).out
        != observe(script()).out
    )


@pytest.mark.parametrize(
    ("levers", "changes", "why"),
    [
        ({"checkpoint": {"blocks": ["blocks.9"]}}, {}, "checkpoint: Net has no block 'blocks.9'"),
        ({"nonsense": {}}, {}, "this version knows no lever 'nonsense'"),
        ({"foreach": {}}, {"model": "class Other(Net): pass\nmodel = Other()"},
         "the plan is for the model Net, and this program trains Other"),
        ({"foreach": {}}, {"optimizer": "optimizer = torch.optim.LBFGS(model.parameters())"},
         "foreach: LBFGS has no choice between kernels over lists and single ones"),
        ({"foreach": {}}, {"optimizer": "optimizer = torch.optim.AdamW(model.parameters(), foreach=False)"},
         "foreach: AdamW has foreach=False already"),
        ({"checkpoint": {"blocks": ALL}},
         {"model": "model = Net()\nmodel.blocks[2].mix[0].register_forward_hook(lambda *_: None)"},
         "checkpoint: blocks.2.mix.0 has a hook, which a second forward pass would call again"),
        ({"foreach": {}, "checkpoint": {"blocks": ALL}},
         {"model": "model = Net()\nmodel.blocks[0].forward = model.blocks[0].forward"},
         "checkpoint: the forward of block blocks.0 was replaced by the program"),
        ({"states_on_host": {}}, {"optimizer": "optimizer = torch.optim.LBFGS(model.parameters())"},
         "states_on_host: LBFGS is not known to update each parameter by itself"),
        ({"compile_budget": {"budget": 0.5}}, {}, "compile_budget: Net is not compiled"),
        ({"step_in_backward": {}}, {"optimizer": "optimizer = torch.optim.AdamW(model.last.parameters())"},
         "step_in_backward: first.weight belongs to no optimizer"),
    ],
)  # fmt: skip
def test_refused_before_the_training(observe: Any, levers: Any, changes: Dict[str, str], why: str) -> None:
    """Nothing is half applied: the program ends at its first training call, also where it catches all it can."""
    result = observe(script(**changes) if changes else script(), env=plan(**levers), ok=False)
    assert result.code == 3 and result.out == ""
    assert facts(result)["plan refused"] == why and "plan" not in facts(result)


@pytest.mark.skipif(
    not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"), reason="PyTorch 2.6 does not tell"
)
@pytest.mark.parametrize("levers", [{"checkpoint": {"blocks": ["*"]}}, {"offload": {}}])
def test_a_program_with_its_own_hooks_on_saved_tensors(observe: Any, levers: Dict[str, Any]) -> None:
    """Those of a lever lie inside of them: the program's would no longer be called."""
    hooks = "with torch.autograd.graph.save_on_cpu(): loss = model(torch.randn(16, 8), step).square().mean()"
    text = script().replace("loss = model(torch.randn(16, 8), step).square().mean()", hooks)
    result = observe(text, env=plan(**levers), ok=False)
    assert result.code == 3 and result.out == ""
    assert facts(result)["plan refused"].endswith(": Net is called within the program's own hooks on saved tensors")
    assert facts(observe(text, env=plan(foreach={})))["plan"] == "applied"


COUNTED = """
def calls():
    counted = collections.Counter()
    sys.setprofile(lambda frame, event, _: counted.update([(event, frame.f_code.co_name)]))
    loss = model(torch.ones(16, 8), 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    sys.setprofile(None)
    return counted

import collections, sys
MODEL
OPTIMIZER
for _ in range(4):
    calls()
random.seed(1)
print(sorted(calls().items()))
"""


def test_a_step_makes_no_call_of_ours(observe: Any) -> None:
    """With a plan that has no lever, a step makes the Python calls that it makes without one, counted by name."""
    text = (
        (TRAIN[: TRAIN.index("MODEL")] + COUNTED)
        .replace("MODEL", "model = Net()")
        .replace("OPTIMIZER", "optimizer = torch.optim.AdamW(model.parameters())")
    )
    plain, changed = observe(text), observe(text, env=plan())
    assert facts(changed)["plan"] == "applied"
    assert "('call', 'forward')" in plain.out
    assert changed.out == plain.out


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "gradients are read by"),
        ("norm = [p.grad.norm() for p in model.parameters() if p.grad is not None]", "gradients are read by"),
        ("model(torch.randn(16, 8), step).mean().backward()", "gradients are accumulated"),
    ],
)
def test_what_needs_gradients_ends_in_its_first_step(observe: Any, after: str, why: str) -> None:
    result = observe(script(after=after), env=plan(step_in_backward={}), ok=False)
    assert result.code == 3 and result.out == ""
    assert facts(result)["plan refused"].startswith("step_in_backward: " + why)


def test_the_agent_may_look_at_gradients(observe: Any) -> None:
    """It does where memory runs out, and that is no read of the program's."""
    after = """if step == 2:
        import hightide_agent.kept as ours
        exec(compile("seen = [p.grad for p in model.parameters()]", ours.__file__, "exec"))"""
    result = observe(script(after=after), env=plan(step_in_backward={}))
    assert facts(result)["plan"] == "applied"
    assert result.out == observe(script(after=after)).out


def test_another_model_that_trains_first_is_passed_by(observe: Any) -> None:
    two = "model = Net()\nother = nn.Sequential(nn.Linear(2, 2))\nother(torch.ones(1, 2))"
    result = observe(script(model=two), env=plan(checkpoint={"blocks": ["blocks.0"]}))
    assert facts(result)["lever checkpoint"] == "1 of 4 blocks"


def test_module_call_is_what_it_was(observe: Any) -> None:
    """From the first training call on nothing of ours is in Module.__call__, so that graphs have no trace of it."""
    model = "before = None\nmodel = Net()"
    after = "assert torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl"
    assert observe(script(model=model, after=after), env=plan(foreach={})).code == 0


LATER = """
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    if step == 2:
        REPLACED
    loss = model(torch.randn(16, 8), step).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("replaced", "levers", "says"), [
    ("model = Net()\n        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", ["checkpoint"],
     "SGD was made later, for"),
    ("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", ["foreach"], "SGD was made later: foreach does not"),
    ("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", ["checkpoint"], ""),
    ("pass", ["checkpoint", "foreach"], ""),
])  # fmt: skip
def test_what_is_made_later_is_told(observe: Any, replaced: str, levers: Any, says: str) -> None:
    settings = {name: {"blocks": ["*"]} if name == "checkpoint" else {} for name in levers}
    result = observe(TRAIN[: TRAIN.index("MODEL")] + LATER.replace("REPLACED", replaced), env=plan(**settings))
    told = facts(result)
    assert told["plan"] == "applied"
    assert told.get("plan left out", "").startswith(says)
    assert bool(says) == ("plan left out" in told)
