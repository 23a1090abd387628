"""Which line of the program an operation of TensorFlow is of, for its profile.

    an operation that runs eagerly ─▶ an event "$train.py:12 main" around it, on its thread
    an operation of a graph        ─▶ an entry of one more plane: its name ─▶ "$train.py:12 main"

Both are as tf.profiler names functions of Python, so XProf reads them, too. What a layer of Keras made is named by the
layer in place of the function: the line is that of fit.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ...agent import Agent
from ...places import caller, is_library
from .. import wire

PLANE = "/host:lines of operations"
EVERY = 256  # calls
MOST = 200_000  # operations of graphs
CALLS = ("TFE_Py_FastPathExecute", "TFE_Py_Execute")


class Lines:
    """Those of this process."""

    def __init__(self, agent: Agent, func_graph: Any) -> None:
        self.agent = agent
        self.asked: Callable[[], None] = lambda: None  # called now and then while operations run
        self._graphs: weakref.WeakSet[Any] = weakref.WeakSet()
        self._originals: List[Tuple[Any, str, Any]] = []
        self._calls = 0
        self._follow(func_graph.FuncGraph)

    def _follow(self, kind: Any) -> None:
        original, graphs = kind.__init__, self._graphs

        @functools.wraps(original)
        def init(graph: Any, *args: Any, **kwargs: Any) -> None:
            original(graph, *args, **kwargs)
            graphs.add(graph)

        kind.__init__ = init

    def begin(self) -> None:
        """Name lines of operations that run eagerly, from here on."""
        tfe = sys.modules["tensorflow.python.pywrap_tfe"]
        for name in CALLS:
            self._wrap(tfe, name)
        self._wrap(sys.modules["tensorflow.python.framework.constant_op"], "convert_to_eager_tensor")

    def end(self) -> None:
        """No longer: it costs as much as small operations do."""
        for module, name, original in self._originals:
            setattr(module, name, original)
        self._originals = []

    def _wrap(self, module: Any, name: str) -> None:
        original = getattr(module, name)
        traced = sys.modules["tensorflow.python.profiler.internal._pywrap_traceme"].TraceMe

        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            if not self._calls % EVERY:
                self.asked()
            event = traced("$%s:%d %s" % caller(sys._getframe(1)))
            try:
                return original(*args, **kwargs)
            finally:
                event.Stop()

        self._originals.append((module, name, original))
        setattr(module, name, run)

    def plane(self) -> bytes:
        """A plane of a profile: each operation of all graphs, with its line."""
        names = {name: place for name, place in self._places() if place is not None}
        entries = b""
        for number, (name, (file, line, function)) in enumerate(sorted(names.items()), 1):
            shown = "$%s:%d %s" % (file, line, function)
            metadata = wire.number(1, number) + wire.message(2, name.encode()) + wire.message(4, shown.encode())
            entries += wire.message(4, wire.number(1, number) + wire.message(2, metadata))
        return wire.message(1, wire.message(2, PLANE.encode()) + entries)

    def _places(self) -> Iterator[Tuple[str, Optional[Tuple[str, int, str]]]]:
        """Where each operation was made; None: operations of that name are of several lines."""
        found: Dict[str, Optional[Tuple[str, int, str]]] = {}
        for graph in list(self._graphs):
            for operation in graph.get_operations():
                if len(found) >= MOST:
                    break
                place = _place(operation)
                if place is not None and found.setdefault(operation.name, place) != place:
                    found[operation.name] = None
        return iter(found.items())


def _place(operation: Any) -> Optional[Tuple[str, int, str]]:
    """The innermost line of the program's own; made by a layer of Keras, with that as its function."""
    layer = ""
    for frame in reversed(operation.traceback or ()):
        if not is_library(frame.filename):
            return frame.filename, frame.lineno, layer or frame.name
        if "/keras/" in frame.filename:
            layer = _layer(operation.name)
    return None


def _layer(name: str) -> str:
    """sequential/dense of gradient_tape/sequential/dense/MatMul/MatMul_1; "" of an operation outside of any."""
    parts = name.split("/")
    if parts[0] == "gradient_tape":
        parts = parts[1:]
    return "/".join(parts[:2] if len(parts) > 2 else parts[:-1])
