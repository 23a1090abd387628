"""What a framework's adapter says of its tensors, for those that look for what keeps them."""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers only: every program of a framework imports this as it starts
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple


class Tensors:
    """What a scan must know of a framework's tensors.

    Args:
        types: exact types; their subclasses are opened as any other object is.
        storage: (something equal for tensors that share their memory, its bytes) of a tensor; may raise for one
            that has no storage.
    """

    def __init__(self, types: Iterable[type], storage: Callable[[Any], Tuple[Any, int]]) -> None:
        self.types = frozenset(types)
        self.storage = storage

    def has_graph(self, tensor: Any) -> bool:
        """Whether it keeps the graph of a computation alive, for derivatives."""
        return False

    def beside(self, tensor: Any) -> List[Any]:
        """Other tensors that it keeps, as its gradient."""
        return []

    def made_by(self, tensor: Any) -> str:
        """The operation that made it, as the node of the graph is called."""
        return ""

    def saved(self, tensor: Any, deadline_ns: int) -> Optional[Dict[Any, int]]:
        """Bytes of each living storage that its graph saved for derivatives, parameters left out; None: not known."""
        return None

    def extent(self, tensor: Any) -> Tuple[int, int, int]:
        """Its elements, their bytes, and the bytes of its storage, which are more where it is a view. May raise."""
        raise NotImplementedError

    def graph_nodes(self, tensor: Any) -> int:
        """Nodes of that graph; -1 of none, and where there are too many to count."""
        return -1

    def attached(self, tensor: Any) -> List[Tuple[str, Any]]:
        """What else hangs on it and may grow, each with its name."""
        return []
