"""The agent looks at what a program holds, and nothing of it lives longer for that.

Each program makes an object, has the agent look, and lets go of it, with the collector of cycles off: the object is
gone at once, as without us.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

from conftest import SOURCE
from test_imagine_device import LIBRARY, device
from test_start import PYTHONS, usable

# What looks at frames, exceptions and containers, without a framework: `look` is given the frame and an object in it.
PLAIN = """
import ast, gc, sys, weakref
sys.path.insert(0, sys.argv[1])
from hightide_agent import frames, kept, oom, places, ran, reach, roots
from hightide_agent.growth_lines import Place
from hightide_agent.holders import Holders
from hightide_agent.imagine.undecided import checks, follow, scopes
from hightide_agent.measure import Measure
from hightide_agent.xla import donation
gc.disable()

class Thing:
    pass

class Agent:
    channel, on_renew, at_end, at_frameworks = None, [], [], []
    def __getattr__(self, name): return lambda *args, **kwargs: None

class Number:
    def item(self):
        follow.followed(sys._getframe(1), True)
        return 0.0

def walked_in_part(frame, thing):
    for found in reach.walk(roots.roots([frame]), {}, 1 << 62):
        break

def watched(frame, thing):
    window = ran.Window()
    assert window.begin([Place(__file__, frame.f_lineno, "", 12, last=frame.f_lineno + 1)], frame)
    inside = [thing]
    window.end(frame)

def measured(frame, thing):
    def waits(): yield thing; yield thing
    generator = waits(); next(generator)
    try: raise ValueError(thing)
    except ValueError as error:
        for item in (thing, [thing], generator, error, lambda: thing, frame): Measure({}).add(item)

def out_of_memory(frame, thing):
    try: inner(thing)
    except MemoryError as error:
        oom.notice(Agent(), error); oom.where(error)
        try: raise KeyError from error
        except KeyError as other: oom.notice(Agent(), other)

def inner(kept): raise MemoryError(kept)

def scanned(frame, thing):
    for step in range(6): holders.scan(step, [frame], 1.0)

def named(frame, thing):
    names = scopes.of(frame)
    scopes.held(ast.Name("thing"), names), scopes.callee(ast.Name("walked_in_part"), names), scopes.takes_back(frame)

LOOKS = {
    "variables": lambda frame, thing: frames.variables(frame),
    "names": named,
    "checks": lambda frame, thing: checks.caught("ValueError", frame),
    "lines": lambda frame, thing: places.caller(frame),
    "reach": lambda frame, thing: list(reach.walk(roots.roots([frame]), {}, 1 << 62)),
    "reach in part": walked_in_part,
    "measure": measured,
    "out of memory": out_of_memory,
    "containers": scanned,
    "statements": watched,
    "items": lambda frame, thing: kept.described([{"a": [thing]}, thing], {}, 1 << 62),
    "donation": lambda frame, thing: donation.called(frame),
}
holders = Holders(Agent())

def function(look):
    thing = Thing(); gone = weakref.ref(thing)
    look(sys._getframe(), thing)
    thing = None
    return gone() is None

def enclosing(look):
    thing = Thing(); gone = weakref.ref(thing); use = lambda: thing
    look(sys._getframe(), thing)
    thing = None
    return gone() is None

def generator(look):
    thing = Thing(); gone = weakref.ref(thing)
    look(sys._getframe(), thing)
    yield
    thing = None
    yield gone() is None

def reads(look):
    best, x, thing = 1.0, Number(), Thing(); gone = weakref.ref(thing)
    if x.item() < best: pass
    try:
        assert x.item() < best * 2
    except AssertionError: pass
    thing = None
    return gone() is None

def own_names(look):
    thing = Thing(); mine = locals()
    look(sys._getframe(), thing)
    return mine["thing"] is thing and "look" in mine

for name, look in LOOKS.items():
    waiting = generator(look); next(waiting)
    for how, done in ("function", function(look)), ("closure", enclosing(look)), ("generator", next(waiting)), (
        "locals() of the program's own", own_names(look)):
        if not done: print(name, "in a", how)
if not reads(None): print("a number that is read")
"""


@pytest.mark.parametrize("python", [p for p in PYTHONS if usable(p)], ids=lambda p: p.parts[-3])
def test_what_is_looked_at_lives_no_longer(tmp_path: Path, python: Path) -> None:
    (tmp_path / "lives.py").write_text(PLAIN)
    done = subprocess.run(
        [str(python), str(tmp_path / "lives.py"), str(SOURCE)], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


# A training whose every object is let go of: what is still there is printed. Collected cycles are nobody's fault.
TRAINING = """
import gc, sys, torch, weakref
from torch.utils.data import DataLoader
where = "cuda" if torch.cuda.is_available() else "cpu"
gone = {}
def note(**things):
    for name, thing in things.items(): gone[name] = weakref.ref(thing)
def left(when):
    for name, thing in gone.items():
        if thing() is not None: print(name, when)

class Data(torch.utils.data.Dataset):
    def __len__(self): return 24
    def __getitem__(self, i): return torch.full((4,), float(i))

def read(x):
    total = x.sum().item()
    if total > 3: return x.mean().item()
    return torch.tensor(x.tolist()).mean().item()

class Kept: pass

def short(kept):
    note(kept=kept); torch.empty(1 << 50, device=where)

def step(model, optimizer, batch, best):
    out = {"big": torch.ones(1000, device=where), "loss": model(batch).pow(2).mean()}
    loss = out["loss"]; note(out=out["big"], loss=loss, batch=batch)
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    assert read(out["big"]) < 1e9 and (out["big"] >= 0).all()
    n = int((out["big"] > 0.5).sum())
    picked = out["big"][out["big"] > 0.5][:n]; note(picked=picked)
    if loss.item() < best: best = loss.item()
    try: short(Kept())
    except RuntimeError: pass
    if gone["kept"]() is not None: print("kept after its exception was caught")
    return best

def train():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)).to(where).train()
    optimizer, data = torch.optim.AdamW(model.parameters()), Data()
    note(model=model, optimizer=optimizer, data=data, weight=model[0].weight)
    best = 1e9
    for epoch in range(4):
        loader = DataLoader(data, batch_size=4); iterator = iter(loader); note(loader=loader, iterator=iterator)
        for batch in iterator:
            best = step(model, optimizer, batch.to(where), best)
            before, held = gone.get("held", lambda: None), torch.ones(8, device=where)
            if before() is not None: print("what the step before held is still there")
            note(held=held)
            if held.sum().item() < -1: break
            inside = [name for name in ("out", "loss", "picked") if gone[name]() is not None]
            if inside: print(inside, "after their step")
        del iterator, loader
    model.eval()
    with torch.no_grad(): model(torch.ones(2, 4, device=where))
    torch.save(model.state_dict(), "kept.pt"); torch.load("kept.pt", weights_only=True)

class Own(torch.optim.SGD): pass
warm = torch.nn.Linear(1, 1); own = Own(warm.parameters(), 0.1); warm(torch.ones(1)).backward(); own.step()
del warm, own
gc.collect(); gc.disable()
train()
left("at the end")
print("done")
"""


@pytest.mark.parametrize("how", ["plain", "observed", "imagined", "with a goal"])
def test_a_trainings_objects_live_no_longer(observe: Any, tmp_path: Path, how: str) -> None:
    pytest.importorskip("torch", reason="needs torch: scripts/setup puts one in place")
    if how in ("imagined", "with a goal") and not (LIBRARY / "libhightide_device.so").exists():
        pytest.skip("device/lib is not built: make device")
    if how == "plain":
        done = subprocess.run(
            [sys.executable, "-c", TRAINING], capture_output=True, text=True, timeout=600, check=True, cwd=tmp_path
        )
        assert done.stdout == "done\n"
        return
    env: Dict[str, str] = {}
    if how != "observed":
        env = {**device(tmp_path, 1), "HIGHTIDE_IMAGINE_STEPS": "0", "HIGHTIDE_IMAGINE_LONGEST": "1"}
    if how == "with a goal":
        env["HIGHTIDE_IMAGINE_UNTIL"] = "evaluation,checkpoint"
    assert observe(TRAINING, env=env, logs=True).out == "done\n"


def test_what_the_program_has_of_its_names_is_left_to_it() -> None:
    """Emptied is what nobody else has, and that in one call: no other thread runs between the look and the emptying."""
    from hightide_agent.frames import variables

    def names(asks: bool) -> int:
        number, frame = 1, sys._getframe()
        own = locals() if asks else {"number": number}
        assert variables(frame)["number"] == 1
        return len(own)

    for _ in range(200):
        assert names(True) >= 3 and names(False) == 1
