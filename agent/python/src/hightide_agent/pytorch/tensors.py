"""PyTorch's tensors, as the scan for growing containers sees them."""

from __future__ import annotations

from typing import Any, List, Tuple

from ..holders import Tensors

_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
MAX_GRAPH = 4000  # nodes of an autograd graph that are counted


class TorchTensors(Tensors):
    """Tensors and parameters: their storages, and the autograd graphs that they keep alive."""

    def __init__(self, torch: Any) -> None:
        super().__init__((torch.Tensor, torch.nn.Parameter), _storage)

    def has_graph(self, tensor: Any) -> bool:
        """Whether it came out of a computation that autograd recorded."""
        return tensor.grad_fn is not None

    def graph_nodes(self, tensor: Any) -> int:
        """Nodes of the autograd graph above it; -1 of none, and where there are more than MAX_GRAPH."""
        if tensor.grad_fn is None:
            return -1
        seen, pending = {tensor.grad_fn}, [tensor.grad_fn]
        while pending:
            for inner, _ in pending.pop().next_functions:
                if inner is not None and inner not in seen:
                    if len(seen) >= MAX_GRAPH:
                        return -1
                    seen.add(inner)
                    pending.append(inner)
        return len(seen)

    def attached(self, tensor: Any) -> List[Tuple[str, Any]]:
        """The hooks on its gradient."""
        return [(name, hooks) for name in _HOOKS if (hooks := getattr(tensor, name, None)) is not None]


def _storage(tensor: Any) -> Tuple[int, int]:
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr(), storage.nbytes()
