"""Which bytes of a device are parameters, gradients, optimizer state or buffers, by address: the truth that no
allocator's history contains.

    a step's end, an out-of-memory error ─▶ look ─▶ (address, bytes, category, name), seen at that time
    snapshot.pickle ─▶ beside it snapshot.pickle.owners.json

A block of the snapshot, or of its history, belongs to an owner where one of the times at which the owner was seen
lies within the block's life. Times are microseconds of the wall clock, as in the history.
"""

from __future__ import annotations

import os
import re
from time import time_ns
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Tuple

from ..encode import encode

if TYPE_CHECKING:
    from ..training import Owned

MAX_LOOKS = 64
MAX_OWNERS = 200_000
PARAMETER, GRADIENT, OPTIMIZER, BUFFER, CACHE = "parameters", "gradients", "optimizer", "buffers", "kv_cache"

# How buffers with the keys and values of attention are called.
CACHES = re.compile(
    r"(?:^|[._])(?:kv_?cache|[kv]_cache|cache_[kv]|(?:key|value)s?_cache|cached_(?:key|value)s?)(?:$|[._\d])"
)

Key = Tuple[str, int, int, str, str]  # device, address, bytes, category, name


class Owners:
    """What was seen, over the life of the process."""

    def __init__(self, model: Any, torch: Any, more: List[Callable[[], Iterator[Owned]]]) -> None:
        self.model = model
        self.torch = torch
        self.more = more
        self.times: List[int] = []
        self.seen: Dict[Key, List[int]] = {}  # indexes of times

    def look(self, search: bool = False) -> None:
        """Note where everything that belongs to a model or an optimizer lies now. search: also of models that no step
        has shown yet, at the cost of a look at all objects."""
        if len(self.times) >= MAX_LOOKS:
            return
        number = len(self.times)
        self.times.append(time_ns() // 1000)
        taken = set()
        for category, name, tensor in self._all(search):
            for storage in _storages(tensor):
                if storage not in taken and len(self.seen) < MAX_OWNERS:
                    taken.add(storage)
                    self.seen.setdefault((*storage, category, name), []).append(number)

    def write(self, path: str) -> None:
        """Write all that was seen beside a snapshot."""
        owners = [
            {"device": device, "address": address, "bytes": size, "category": category, "name": name, "seen": times}
            for (device, address, size, category, name), times in self.seen.items()
        ]
        text = encode({"version": 1, "times_us": self.times, "owners": owners})
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path + ".owners.json.new", flags, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.rename(path + ".owners.json.new", path + ".owners.json")

    def _all(self, search: bool) -> Iterator[Tuple[str, str, Any]]:
        for owned in self.more:
            yield from owned()
        names: Dict[int, str] = {}
        parameters: List[Tuple[str, Any]] = []
        buffers: List[Tuple[str, Any]] = []
        for root in self.model.roots.modules() or (self.model.roots.unowned() if search else ()):
            for path, module in _named(root):
                for kind, into in (("_parameters", parameters), ("_buffers", buffers)):
                    for name, tensor in module.__dict__.get(kind, {}).items():
                        if tensor is not None and id(tensor) not in names:
                            names[id(tensor)] = path + name
                            into.append((path + name, tensor))
        for optimizer in self.model.steps.optimizers():
            for g, group in enumerate(optimizer.param_groups):
                for i, parameter in enumerate(group["params"]):
                    if id(parameter) not in names:
                        names[id(parameter)] = "group%d.%d" % (g, i)
                        parameters.append((names[id(parameter)], parameter))
        for name, parameter in parameters:
            yield PARAMETER, name, parameter
        for name, buffer in buffers:
            yield CACHE if CACHES.search(name) else BUFFER, name, buffer
        for name, parameter in parameters:
            gradient = getattr(parameter, "grad", None)
            if gradient is not None:
                yield GRADIENT, name, gradient
        for optimizer in self.model.steps.optimizers():
            for parameter, state in list(optimizer.state.items()):
                yield from _state(names.get(id(parameter), ""), state, self.torch)


def _state(name: str, state: Any, torch: Any) -> Iterator[Tuple[str, str, Any]]:
    """The tensors of one parameter's optimizer state, also those in lists and dicts (as quantized ones are)."""
    items = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, (list, tuple)) else ()
    for key, value in items:
        inner = "%s.%s" % (name, key)
        if isinstance(value, torch.Tensor):
            yield OPTIMIZER, inner, value
        elif isinstance(value, (dict, list, tuple)):
            yield from _state(inner, value, torch)


def _storages(tensor: Any) -> Iterator[Tuple[str, int, int]]:
    """(device, address, bytes) of the storages under a tensor: of a wrapper, those of its parts."""
    try:
        inner = getattr(tensor, "_local_tensor", None)
        if inner is not None:
            yield from _storages(inner)
            return
        flatten = getattr(type(tensor), "__tensor_flatten__", None)
        if flatten is not None:
            for name in flatten(tensor)[0]:
                yield from _storages(getattr(tensor, name))
            return
        storage = tensor.untyped_storage()
        if tensor.device.type not in {"cpu", "meta"} and storage.nbytes():
            yield str(tensor.device), storage.data_ptr(), storage.nbytes()
    except Exception:  # sparse, lazy or already freed: no storage of its own
        return


def _named(root: Any, prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """The module and all below it with their paths, each module once."""
    seen = {id(root)}
    todo = [(prefix, root)]
    while todo:
        path, module = todo.pop()
        yield path, module
        for name, child in module.__dict__.get("_modules", {}).items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                todo.append(("%s%s." % (path, name), child))
