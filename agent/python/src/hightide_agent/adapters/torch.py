"""PyTorch: wires its hooks to the tracker. The parts are in hightide_agent/pytorch.

    DataLoader.__next__ ─▶ data          root module's hooks ─▶ forward, evaluation, its children ─▶ module
    autograd.backward ─▶ backward        optimizers' global hooks ─▶ optimizer, and the end of a step
    torch.save ─▶ checkpoint             torch.compile ─▶ hooks inside what is compiled are taken away

Named functions are wrapped where PyTorch has no hook. What a version lacks is left out; each part
is installed for itself, so that trouble with one costs only that one.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from .. import control
from ..agent import Agent
from ..holders import Holders
from ..pytorch import cuda, data, model, modules, optimizers, owners, wrapped
from ..tracker import Tracker

Watch = Callable[[str, Callable[[Any], None]], None]


def install(agent: Agent, torch: Any, watch: Watch) -> None:
    """Observe this process's use of torch, which has just been imported."""
    built_for = getattr(torch.version, "cuda", None)
    agent.framework("torch", str(torch.__version__), cuda=built_for or "none")
    tracker = Tracker(agent)
    roots = modules.Roots(agent, tracker, torch)
    steps = optimizers.Steps(agent, tracker, roots, torch)
    holders = Holders(agent, torch)
    models = model.Model(agent, roots, steps, torch)
    tracker.at_step_end += [models.step_ended, holders.step_ended]
    device = cuda.Cuda(agent, tracker, torch, owners.Owners(models, torch))
    parts: list[tuple[str, Callable[[], None]]] = [
        ("backward passes", lambda: wrapped.backward(tracker, torch)),
        ("checkpoints", lambda: wrapped.save(tracker, torch)),
        ("compilation", lambda: wrapped.compile(agent, roots, torch)),
        ("modules", roots.install),
        ("optimizers", lambda: watch("torch.optim.optimizer", steps.install)),
        ("gradient scalers", lambda: watch("torch.amp.grad_scaler", steps.install_scaler)),
        ("gradient scalers", lambda: watch("torch.cuda.amp.grad_scaler", steps.install_scaler)),
        ("devices", device.install),
        ("data loaders", lambda: watch("torch.utils.data.dataloader", data.loader(agent, tracker))),
        ("data workers", lambda: watch("torch.utils.data._utils.worker", data.worker(agent, holders))),
    ]
    for name, part in parts:
        try:
            part()
        except Exception as error:
            agent.log("could not observe %s" % name, error)
    if os.environ.get("HIGHTIDE_IMAGINE") == "1":
        from .. import imagine

        imagine.install(agent, imagine.Parts(torch, tracker, roots, steps, models, device), watch)
    tracker.at_step_end.append(control.stopper(agent))  # the last one: it may end the program
