"""PyTorch's tensors, as the scan for growing containers sees them."""

from __future__ import annotations

from time import thread_time_ns
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..tensors import Tensors

_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
MAX_GRAPH = 4000  # nodes of an autograd graph that are counted


class TorchTensors(Tensors):
    """Tensors and parameters: their storages, and the autograd graphs that they keep alive."""

    def __init__(self, torch: Any) -> None:
        super().__init__((torch.Tensor, torch.nn.Parameter), _storage)
        self.kinds = (torch.Tensor,)

    def has_graph(self, tensor: Any) -> bool:
        """Whether it came out of a computation that autograd recorded."""
        return tensor.grad_fn is not None

    def graph_nodes(self, tensor: Any) -> int:
        """Nodes of the autograd graph above it; -1 of none, and where there are more than MAX_GRAPH."""
        count = sum(1 for _ in _nodes(tensor))
        return count if 0 < count <= MAX_GRAPH else -1

    def beside(self, tensor: Any) -> List[Any]:
        """The gradient that backward has left there."""
        return [tensor.grad] if tensor.is_leaf and tensor.grad is not None else []

    def made_by(self, tensor: Any) -> str:
        """As MulBackward0."""
        return type(tensor.grad_fn).__name__

    def saved(self, tensor: Any, deadline_ns: int) -> Optional[Dict[Any, int]]:
        """What backward would read, by the address of its storage: nothing of a graph that backward has freed.

        What a program's own hooks packed is looked at, never unpacked: checkpointing would run a forward pass.
        """
        alive: Dict[Any, int] = {}
        for node in _nodes(tensor):
            if thread_time_ns() > deadline_ns:
                return None
            for slot in _saved_slots(node):
                packed: Any = getattr(slot, "data", self)  # of older PyTorch there is none
                for kept in packed if type(packed) in (tuple, list) else (packed,):
                    if isinstance(kept, self.kinds):
                        whole = kept if kept._base is None else kept._base
                        if not (whole.is_leaf and whole.requires_grad):  # a parameter lives anyway
                            alive.update([_storage(kept)])
                    elif kept is not None and packed is kept:
                        return None
        return alive

    def extent(self, tensor: Any) -> Tuple[int, int, int]:
        """Of a dense tensor."""
        return tensor.numel(), tensor.numel() * tensor.element_size(), _storage(tensor)[1]

    def attached(self, tensor: Any) -> List[Tuple[str, Any]]:
        """The hooks on its gradient."""
        return [(name, hooks) for name in _HOOKS if (hooks := getattr(tensor, name, None)) is not None]


def _storage(tensor: Any) -> Tuple[int, int]:
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr(), storage.nbytes()


def _nodes(tensor: Any) -> Iterator[Any]:
    """The nodes of its graph, each once, and no more than one beyond MAX_GRAPH."""
    if tensor.grad_fn is None:
        return
    seen, pending = {tensor.grad_fn}, [tensor.grad_fn]
    while pending:
        node = pending.pop()
        yield node
        for inner, _ in node.next_functions:
            if inner is not None and inner not in seen and len(seen) <= MAX_GRAPH:
                seen.add(inner)
                pending.append(inner)


_slots: Dict[type, List[str]] = {}  # attributes of a type of node that hold saved tensors


def _saved_slots(node: Any) -> Iterator[Any]:
    kind = type(node)
    names = _slots.get(kind)
    if names is None:
        names = _slots[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")]
    for name in names:
        slots = getattr(node, name)
        yield from slots if isinstance(slots, (tuple, list)) else (slots,)
