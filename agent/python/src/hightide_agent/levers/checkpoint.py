"""Activation checkpointing of some of the repeated blocks: `blocks`, their names, or * for all.

A chosen block keeps its inputs alone, and its forward pass is made again in the backward pass. Numbers stay the same
bit for bit: the second pass finds the generators of PyTorch, Python and NumPy, autocast and running statistics as the
first one did, and leaves them as they were. It costs that second pass. It is refused where the model is compiled
(torch.compile plans that itself), where a block is checkpointed already, has a forward of its own or hooks inside,
within the program's own hooks on saved tensors, and before PyTorch 2.1. A cache that transformers' models fill while
they train is not given to a chosen block, as gradient_checkpointing_enable() does it.
"""

from __future__ import annotations

import functools
import random
import sys
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from .found import Found, Refused, own_saved_hooks
from .plan import of_block

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
CACHES = ("past_key_values", "past_key_value", "layer_past", "cache_params")


def prepare(found: Found, settings: Dict[str, Any]) -> Callable[[], str]:
    """Look at the blocks; what is returned wraps the forward of their classes."""
    from torch.utils import checkpoint as library

    if not hasattr(library, "noop_context_fn"):
        raise Refused("it needs PyTorch 2.1 or newer")
    if found.compiled:
        raise Refused("%s is compiled, and torch.compile plans itself what it computes again" % found.name)
    if own_saved_hooks(found.torch):
        raise Refused("%s is called within the program's own hooks on saved tensors" % found.name)
    names: List[str] = settings.get("blocks", [])
    if not names:
        raise Refused("no blocks are named")
    blocks = found.blocks() if names == ["*"] else {name: of_block(found, name) for name in names}
    if not blocks:
        raise Refused("%s has no repeated blocks" % found.name)
    for name, block in blocks.items():
        _look(name, block)

    def apply() -> str:
        kinds: Dict[type, Any] = {}
        for block in blocks.values():
            kinds.setdefault(type(block), weakref.WeakSet()).add(block)
        for kind, chosen in kinds.items():
            _wrap(found.torch, library.checkpoint, kind, chosen)
        return "%d of %d blocks" % (len(blocks), len(found.blocks()))

    return apply


def _look(name: str, block: Any) -> None:
    """Refuse a block whose second pass could not be the first again."""
    from ..pytorch.modules import _Hook

    if "forward" in vars(block):
        raise Refused("the forward of block %s was replaced by the program" % name)
    for path, inner in block.named_modules():
        full = "%s.%s" % (name, path) if path else name
        if getattr(inner, "gradient_checkpointing", False) or getattr(inner, "grad_checkpointing", False):
            raise Refused("the program checkpoints %s itself" % full)
        if inner is not block and any(
            not isinstance(hook, _Hook) for kind in HOOKS for hook in getattr(inner, kind, {}).values()
        ):
            raise Refused("%s has a hook, which a second forward pass would call again" % full)


def _wrap(torch: Any, checkpoint: Any, kind: Any, chosen: Any) -> None:
    """Let the class's forward checkpoint the chosen ones. A copy or a pickle of one has no trace of it."""
    plain = kind.forward

    @functools.wraps(plain)
    def forward(block: Any, /, *args: Any, **kwargs: Any) -> Any:
        if block not in chosen or not block.training or not torch.is_grad_enabled():
            return plain(block, *args, **kwargs)
        args, kwargs = _without_caches(args, kwargs)

        def run(_: Any, *again: Any) -> Any:
            return plain(block, *again, **kwargs)

        device = next((p.device for p in block.parameters()), "cpu")
        anchor = torch.empty(0, device=device)  # whose generators are kept is seen from positional tensors alone
        return checkpoint(run, anchor, *args, use_reentrant=False, context_fn=lambda: Pass.both(block))

    kind.forward = forward


def _without_caches(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """A cache would be written again by the second pass."""
    kwargs = {name: None if name in CACHES else value for name, value in kwargs.items()}
    if kwargs.get("use_cache"):
        kwargs["use_cache"] = False
    return tuple(None if type(value).__name__.endswith("Cache") else value for value in args), kwargs


class Pass:
    """One of the two forward passes of a block, as a context. The first notes what the second is to find."""

    def __init__(self, block: Any, first: Optional[Pass] = None) -> None:
        self.block = block
        self.first = first
        self.generators: List[Any] = []
        self.versions: Dict[int, int] = {}
        self.changed: List[Any] = []
        self.kept: List[Tuple[Any, Any]] = []

    @classmethod
    def both(cls, block: Any) -> Tuple[Pass, Pass]:
        """The first pass, and the second one."""
        first = cls(block)
        return first, cls(block, first)

    def __enter__(self) -> None:
        self.generators = _generators()
        if self.first is None:
            self.versions = {id(b): b._version for b in self.block.buffers()}
            return
        for put, state in zip(_setters(), self.first.generators):
            put(state)
        self.kept = [(buffer, buffer.detach().clone()) for buffer in self.first.changed]

    def __exit__(self, *_: Any) -> None:
        if self.first is None:
            self.changed = _running(self.block) + [
                b for b in self.block.buffers() if self.versions.get(id(b)) != b._version
            ]
            return
        for put, state in zip(_setters(), self.generators):
            put(state)
        for buffer, value in self.kept:
            buffer.data.copy_(value)  # not seen by autograd, which may have saved it
        self.kept = []


def _running(block: Any) -> List[Any]:
    """Running statistics: kernels write them without a trace in their version."""
    return [
        buffer
        for module in block.modules()
        if getattr(module, "track_running_stats", False)
        for buffer in module.buffers(recurse=False)
    ]


def _generators() -> List[Any]:
    """States of the generators that PyTorch does not keep itself."""
    numpy = sys.modules.get("numpy.random")
    return [random.getstate()] + ([numpy.get_state()] if numpy is not None else [])


def _setters() -> List[Any]:
    numpy = sys.modules.get("numpy.random")
    return [random.setstate] + ([numpy.set_state] if numpy is not None else [])
