"""What a plan is applied to: the model as the program calls it, its repeated blocks, its optimizers."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, List, Tuple

from .. import collected
from ..pytorch.modules import _unwrapped

MOST_BLOCKS = 512
LISTS = ("ModuleList", "Sequential", "ModuleDict")


class Refused(Exception):
    """A lever must not be used here; the text says why, as a sentence about the program."""


class Found:
    """What the program has made by its first training call. `called` may wrap the model."""

    def __init__(self, torch: Any, agent: Any, called: Any) -> None:
        self.torch = torch
        self.agent = agent
        self.called = called
        self.model = _unwrapped(called)
        self.compiled = getattr(called, "_compiled_call_impl", None) is not None or (
            self.model is not called and any(type(m).__name__ == "OptimizedModule" for m in called.modules())
        )
        self.on_host: Dict[int, Any] = {}  # by the id of an optimizer: who moves its states, or has others
        self.levers: FrozenSet[str] = frozenset()  # the names of the plan's

    @property
    def sharded(self) -> bool:
        """Whether ranks keep parts of the parameters, gathered where they are used: FSDP, DeepSpeed's ZeRO 3."""
        modules = list(self.called.modules())
        flat = any(type(m).__name__ == "FullyShardedDataParallel" for m in modules)
        return (
            flat
            or any(hasattr(m, "_get_fsdp_state") for m in modules)
            or any(hasattr(p, "ds_id") for p in self.model.parameters())
        )

    @property
    def name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

    def parameters(self) -> int:
        """How many numbers the model's parameters have, each counted once; 0: not known, a rank has parts."""
        if any(type(m).__name__ == "FullyShardedDataParallel" for m in self.called.modules()):
            return 0
        return sum(getattr(p, "ds_numel", None) or p.numel() for p in self.model.parameters())

    def blocks(self) -> Dict[str, Any]:
        """The repeated blocks by their names in the model, in order."""
        model = self.model
        found = list(_listed(model, "")) or list(_alike(model, "")) or list(_listed(model, "", True))
        if not found and type(model).__name__ in LISTS:
            found = _of_one_class([(n, c) for n, c in model.named_children() if _block(c)])
        return dict(found[:MOST_BLOCKS])

    def optimizers(self) -> List[Any]:
        """Those that own a parameter of the model, one that wraps another left out."""
        base: type = self.torch.optim.Optimizer
        ours = {id(p) for p in self.model.parameters()}
        return [
            o
            for o in collected.of_types(collected.subclasses(base))
            if any(id(p) in ours for group in getattr(o, "param_groups", ()) for p in group["params"])
            and not any(isinstance(v, base) for v in vars(o).values())
        ]

    def optimizer(self) -> List[Any]:
        """Those optimizers; Refused where there is none."""
        optimizers = self.optimizers()
        if not optimizers:
            raise Refused("no optimizer of %s exists when it is first called" % self.name)
        return optimizers


def own_saved_hooks(torch: Any) -> bool:
    """Whether the program calls its model within hooks of its own on saved tensors, as torch.autograd.graph's."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)  # PyTorch 2.6 has none
    return top is not None and top(False) is not None


def _block(module: Any) -> bool:
    """Whether it has parts of its own, and trains."""
    return any(True for _ in module.children()) and any(p.requires_grad for p in module.parameters())


def _of_one_class(children: List[Tuple[str, Any]]) -> List[Tuple[str, Any]]:
    """Those children whose class occurs twice or more."""
    kinds = [type(child) for _, child in children]
    return [(name, child) for name, child in children if kinds.count(type(child)) > 1]


def _listed(module: Any, prefix: str, lists: bool = False) -> Iterator[Tuple[str, Any]]:
    """Members of lists that have several of one class; blocks inside of blocks are left alone. `lists`: lists of layers
    are members too."""
    for name, child in module.named_children():
        path = prefix + name
        taken = set()
        if type(child).__name__ in LISTS:
            members = [
                (n, c) for n, c in child.named_children() if _block(c) and (lists or type(c).__name__ not in LISTS)
            ]
            for member, block in _of_one_class(members):
                taken.add(member)
                yield path + "." + member, block
        if not taken:
            yield from _listed(child, path + ".", lists)
            continue
        for member, other in child.named_children():
            if member not in taken:
                yield from _listed(other, path + "." + member + ".", lists)


def _alike(module: Any, prefix: str) -> Iterator[Tuple[str, Any]]:
    """Attributes of one class side by side, where a model has no list of blocks."""
    children = list(module.named_children())
    blocks = [(n, c) for n, c in children if _block(c) and type(c).__name__ not in LISTS]
    same = _of_one_class(blocks)
    for name, block in same:
        yield prefix + name, block
    for name, child in children:
        if not any(child is block for _, block in same):
            yield from _alike(child, prefix + name + ".")
