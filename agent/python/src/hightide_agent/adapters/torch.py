"""PyTorch. The parts are in hightide_agent/pytorch.

    DataLoader.__next__ ─▶ data          root module's hooks ─▶ forward, evaluation, its children ─▶ module
    autograd.backward ─▶ backward        optimizers' global hooks ─▶ optimizer, and the end of a step
    torch.save ─▶ checkpoint             torch.compile ─▶ hooks inside what is compiled are taken away
    torch's own start of CUDA or ROCm, which it calls cuda ─▶ the caching allocator's counters, its history
    the start of another accelerator ─▶ its counters

Functions are wrapped where PyTorch has no hook. What a version lacks is left out; each part is installed for itself,
so that trouble with one costs only that one.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Optional

from .. import levers, oom
from ..places import text_of
from ..pytorch import accelerator, collectives, compiled, cuda, data, model, modules, optimizers, owners
from ..pytorch.tensors import TorchTensors
from ..tracker import BACKWARD, CHECKPOINT
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]


def install(training: Training, torch: Any, watch: Watch) -> None:
    """Observe this process's use of torch, which has just been imported."""
    agent = training.agent
    agent.framework(
        "torch", str(torch.__version__), cuda=getattr(torch.version, "cuda", None) or "none",
        hip=getattr(torch.version, "hip", None),
    )  # fmt: skip
    training.tensors(TorchTensors(torch))
    training.out_of_memory(_out_of_memory)
    roots = modules.Roots(training, torch)
    steps = optimizers.Optimizers(training, torch)
    models = model.Model(training, roots, torch)
    training.at_step_end(models.step_ended)
    device = cuda.Cuda(training, torch, owners.Owners(models, torch, training.owned))
    compiling = compiled.Compiling(agent)
    training.install_parts(
        "PyTorch",
        ("backward passes", lambda: _backward(training, torch)),
        ("checkpoints", lambda: _save(training, torch)),
        ("compilation", lambda: compiled.install(agent, roots, torch)),
        ("compilations", lambda: watch("torch._dynamo.callback", compiling.callbacks)),
        ("compiled kernels", lambda: watch("torch._inductor.async_compile", compiling.count)),
        ("modules", roots.install),
        ("optimizers", lambda: watch("torch.optim.optimizer", steps.install)),
        ("gradient scalers", lambda: watch("torch.amp.grad_scaler", steps.install_scaler)),
        ("gradient scalers", lambda: watch("torch.cuda.amp.grad_scaler", steps.install_scaler)),
        ("devices", device.install),
        ("other accelerators", accelerator.Accelerator(training, torch).install),
        ("collectives", lambda: collectives.install(training, torch, roots, watch)),
        ("data loaders", lambda: watch("torch.utils.data.dataloader", data.loader(training))),
        ("data workers", lambda: watch("torch.utils.data._utils.worker", data.worker(training))),
    )
    if os.environ.get("HIGHTIDE_IMAGINE") == "1":
        from .. import imagine

        imagine.install(training, imagine.Parts(torch, roots, models, device), watch)
        return
    if levers.wanted():
        from ..levers import plan

        training.install_parts("PyTorch", ("levers", lambda: plan.install(training, torch, watch)))
    if os.environ.get("HIGHTIDE_RETRY"):
        from ..pytorch import resume

        training.install_parts("PyTorch", ("resume", lambda: resume.install(training, watch)))
    if os.environ.get("HIGHTIDE_RESCUE"):
        from ..pytorch import rescue

        training.install_parts("PyTorch", ("rescue", lambda: rescue.install(training, watch)))


def _backward(training: Training, torch: Any) -> None:
    """Tensor.backward calls this one, by its name in torch.autograd."""
    torch.autograd.backward = training.phase(BACKWARD, torch.autograd.backward)


def _save(training: Training, torch: Any) -> None:
    torch.save = torch.serialization.save = training.phase(CHECKPOINT, torch.save)


def _out_of_memory(error: BaseException) -> Optional[oom.Shortage]:
    """The allocator of the host's memory. CUDA's is told by pytorch/cuda.py, before the exception exists."""
    if isinstance(error, RuntimeError):
        text = text_of(error)
        if "DefaultCPUAllocator" in text or ("can't allocate memory" in text and "alloc" in text):
            return "torch.cpu", "cpu", oom.asked_bytes(text)
    return None
