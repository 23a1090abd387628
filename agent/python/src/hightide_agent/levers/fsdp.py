"""The model's parameters, gradients and optimizer states are spread over `ranks` processes, each with a GPU: FSDP2.

    the engine starts the command as `ranks` of torchrun ─▶ each sees its own GPU alone, and draws as the others do
    DataLoader ─▶ a batch ─▶ the slice of this rank   first training call ─▶ fully_shard of each block, then the model

The mean of the ranks' gradients is that of the whole batch within the rounding of the sum, and dropout draws for each
slice. It costs gathers of each block's parameters, two a step, and sums of its gradients. It is refused where a slice
would not be like the others, with batch norm, and where the program has what knows the whole parameters: a wrapper,
lists of its own, hooks, loaded states, a gradient scaler.
"""

from __future__ import annotations

import atexit
import functools
import gc
import hashlib
import os
import random
import weakref
from typing import Any, Callable, Dict, List, Set

from .. import collected
from . import gathered
from .found import Found, Refused

Watch = Callable[[str, Callable[[Any], None]], None]


class Slicing:
    """Which rank this is, and what loaders have given it."""

    def __init__(self, refuse: Callable[[Any, str], None], agent: Any) -> None:
        from ..pytorch import rescue

        self.rank, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.refuse, self.agent = refuse, agent
        self.library = rescue.library()
        self.model: Any = lambda: None  # once it is sharded
        self.taken: List[str] = []  # by batch that was cut before: a digest of the whole one, where it is on the host

    def cuts(self, torch: Any) -> bool:
        """Whether a batch that is taken now is for training."""
        model = self.model()
        return bool(torch.is_grad_enabled() and (model is None or model.training))

    def loader(self, module: Any) -> None:
        """Cut what loaders give."""
        import torch

        kind, slicing = module._BaseDataLoaderIter, self
        begin, plain = kind.__init__, kind.__next__

        @functools.wraps(begin)
        def __init__(iterator: Any, loader: Any, *more: Any, **named: Any) -> None:
            begin(iterator, loader, *more, **named)
            if slicing.cuts(torch):
                try:
                    slicing.look(loader)
                except Refused as error:
                    slicing.refuse(slicing.agent, "fsdp: %s" % error)

        @functools.wraps(plain)
        def __next__(iterator: Any) -> Any:
            batch = plain(iterator)
            return slicing.cut(batch) if slicing.cuts(torch) else batch

        kind.__init__, kind.__next__ = __init__, __next__

    def look(self, loader: Any) -> None:
        """Refuse a loader that gives a batch that is not cut into like slices."""
        size = getattr(loader, "batch_size", None)
        if size is None:
            raise Refused("a DataLoader has no batch_size, so that its batches may be of any size")
        try:
            last = 0 if loader.drop_last else len(loader.sampler) % size
        except TypeError:
            raise Refused("how long the data is is not known, and with it the last batch") from None
        for what, samples in (("batches", size), ("the last batch", last)):
            if samples % self.ranks:
                raise Refused("%s of %d samples: %d ranks would have unlike slices" % (what, samples, self.ranks))

    def cut(self, batch: Any) -> Any:
        """This rank's slice of a batch."""
        size = self.library.size_of((batch,), {})
        if size % self.ranks:
            self.refuse(self.agent, "fsdp: a batch of %d samples: %d ranks would have unlike slices" % (
                size, self.ranks))  # fmt: skip
        if self.model() is None:
            self.taken.append(_digest(self.library._tensors(batch)))
        each = size // self.ranks
        return self.library.cut(batch, size, each * self.rank, each * (self.rank + 1))


slicing: Any = None


def install(watch: Watch, torch: Any, agent: Any, refuse: Callable[[Any, str], None]) -> None:
    """Before the program uses CUDA, draws a number or makes a loader: be a rank, where this process is one."""
    global slicing
    if not all(name in os.environ for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")):
        return
    slicing = Slicing(refuse, agent)
    local, visible = int(os.environ["LOCAL_RANK"]), os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or len(visible.split(",")) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(local) if visible is None else visible.split(",")[local]
    seed = int(hashlib.sha256(os.environ.get("TORCHELASTIC_RUN_ID", "").encode()).hexdigest()[:8], 16)
    random.seed(seed)
    torch.manual_seed(seed)
    watch("numpy", lambda numpy: numpy.random.seed(seed))
    watch("torch.utils.data.dataloader", slicing.loader)


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """What is returned shards the model, and puts the shards in the places of the parameters in the optimizers."""
    torch, model = found.torch, found.model
    optimizers = found.optimizer()
    if slicing is None or slicing.ranks != settings.get("ranks"):
        raise Refused("this process is not one of %s ranks that were started for it" % settings.get("ranks"))
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        raise Refused("it needs PyTorch 2.6 or newer") from None
    _look(found, optimizers)
    device = {p.device.type for p in model.parameters()}
    if len(device) != 1 or not device <= {"cuda", "cpu"}:
        raise Refused("parameters of %s are on %s" % (found.name, " and ".join(sorted(device))))
    if len(slicing.taken) != 1:
        raise Refused("the program took %d batches of a DataLoader before its model was called, and not one" % len(
            slicing.taken))  # fmt: skip

    store = _alike(torch.distributed, next(iter(device)), slicing.taken[0])

    def apply() -> str:
        distributed = torch.distributed
        backend = "nccl" if device == {"cuda"} else "gloo"
        distributed.init_process_group(backend, store=store, rank=slicing.rank, world_size=slicing.ranks)
        atexit.register(lambda: distributed.is_initialized() and distributed.destroy_process_group())
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                distributed.broadcast(tensor, 0)
        blocks, before = found.blocks(), dict(model.named_parameters())
        mesh = distributed.device_mesh.init_device_mesh(next(iter(device)), (slicing.ranks,))
        for block in blocks.values():
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        instead = {id(before[name]): parameter for name, parameter in model.named_parameters()}
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["params"] = [instead[id(p)] for p in group["params"]]
        slicing.model = weakref.ref(model)
        gathered.install(torch, model, optimizers, slicing.rank)
        return "%d blocks over %d ranks" % (len(blocks), slicing.ranks)

    return apply


def _look(found: Found, optimizers: List[Any]) -> None:
    """Refuse what knows the whole parameters."""
    torch, model = found.torch, found.model
    if found.compiled:
        raise Refused("%s is compiled" % found.name)
    if found.sharded or found.called is not model:
        raise Refused("%s is wrapped by what knows its parameters" % found.name)
    if torch.distributed.is_initialized():
        raise Refused("the program makes a process group itself")
    if any(optimizer.state for optimizer in optimizers):
        raise Refused("the optimizer has states already")
    for name, module in model.named_modules():
        if getattr(module, "track_running_stats", False) or type(module).__name__.startswith("SyncBatch"):
            raise Refused("%s is a batch norm, which would see a slice alone" % name)
    scalers = [kind for kind in collected.subclasses(torch.amp.GradScaler)]
    if any(scaler.is_enabled() for scaler in collected.of_types(scalers)):
        raise Refused("a gradient scaler looks at the gradients of a rank alone")
    parameters = dict(model.named_parameters())
    ours = {id(p) for p in parameters.values()}
    if any(id(p) not in ours for o in optimizers for group in o.param_groups for p in group["params"]):
        raise Refused("the optimizer also trains what is not of %s" % found.name)
    for name, parameter in parameters.items():
        if parameter.grad is not None:
            raise Refused("%s has a gradient before the first step" % name)
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise Refused("%s has a hook" % name)
    _owned_once(found)
    del parameter
    _held(found, optimizers, parameters)


def _owned_once(found: Found) -> None:
    """Refuse a parameter of a block that something else of the model has too: each group is gathered by itself."""
    owner: Dict[int, str] = {}
    blocks = found.blocks()
    for name, parameter in found.model.named_parameters(remove_duplicate=False):
        block = next((b for b in blocks if name.startswith(b + ".")), "")
        if owner.setdefault(id(parameter), block) != block:
            raise Refused("%s is a parameter of two parts of the model" % name)


def _held(found: Found, optimizers: List[Any], parameters: Dict[str, Any]) -> None:
    """Refuse a program that keeps parameters in a list, a tuple, a set or a dict of its own, as for clipping."""
    known: Set[int] = {id(parameters)} | {id(g["params"]) for o in optimizers for g in o.param_groups}
    known |= {id(module._parameters) for module in found.model.modules()}
    for holder in gc.get_referrers(*parameters.values()):
        scope = isinstance(holder, dict) and "__name__" in holder  # a variable of a module
        scope = scope or type(holder).__module__.startswith("hightide_agent.")  # a walk of ours that is on its way
        if isinstance(holder, (list, tuple, set, dict)) and id(holder) not in known and not scope:
            raise Refused("the program keeps parameters of %s in a %s of its own" % (
                found.name, type(holder).__name__))  # fmt: skip


def _digest(tensors: List[Any]) -> str:
    """What tells batches apart; of tensors on a device, their shapes alone."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(repr((tuple(tensor.shape), tensor.dtype)).encode())
        if tensor.device.type == "cpu" and not tensor.is_sparse:
            digest.update(bytes(tensor.detach().contiguous().flatten().view(-1).numpy().data))
    return digest.hexdigest()


def _alike(distributed: Any, device: str, taken: str) -> Any:
    """Where ranks meet; Refused where they are on unlike devices or have taken unlike batches."""
    store, rank, ranks = next(distributed.rendezvous("env://", slicing.rank, slicing.ranks))
    store.set("hightide/%d" % rank, "%s %s" % (device, taken))
    said = [store.get("hightide/%d" % other).decode().split() for other in range(ranks)]
    if any(other != device for other, _ in said):
        raise Refused("a rank has no GPU: there are fewer than %d" % ranks)
    if any(other != taken for _, other in said):
        raise Refused("ranks draw unlike batches: what draws them has to have a seed")
    return distributed.PrefixStore("hightide", store)
