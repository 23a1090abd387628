"""ONNX Runtime: each call of a session is a step, and all of it is the forward pass.

    InferenceSession(model) ─▶ facts: the model's file, whether it is mapped, threads, providers, the arena
    run, run_with_iobinding, run_with_ort_values ─▶ forward, the end of a step

Of several sessions, such as an encoder and a decoder, the one that was called first leads: the calls of others belong
to its steps. A training's optimizer leads before all of them. What the arena holds the runtime does not tell Python: it
is in the heap, where the lines are that call a session.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, Callable, Optional

from ..tracker import FORWARD
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]
CALLS = ("run", "run_with_iobinding", "run_with_ort_values")


def install(training: Training, onnxruntime: Any, watch: Watch) -> None:
    """Observe this process's use of onnxruntime, which has just been imported."""
    training.agent.framework("onnxruntime", str(onnxruntime.__version__))
    session = onnxruntime.InferenceSession
    training.install_parts(
        "ONNX Runtime",
        ("calls of sessions", lambda: _calls(training, session)),
        ("models", lambda: _models(training, session)),
    )


def _calls(training: Training, session: Any) -> None:
    lead: Optional[Callable[[], Any]] = None  # a weak reference to the session that was called first

    def stepping(function: Callable[..., Any]) -> Callable[..., Any]:
        inside = training.phase(FORWARD, function)

        @functools.wraps(function)
        def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            nonlocal lead
            result = inside(self, *args, **kwargs)
            if lead is None or lead() is None:
                lead = weakref.ref(self)
            if lead() is self:
                training.steps.passed(self, guessed=True)
            return result

        return call

    for name in CALLS:
        if hasattr(session, name):
            setattr(session, name, stepping(getattr(session, name)))


def _models(training: Training, session: Any) -> None:
    original, largest = session.__init__, -1

    @functools.wraps(original)
    def init(self: Any, model: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal largest
        original(self, model, *args, **kwargs)
        try:
            size = len(model) if isinstance(model, bytes) else os.path.getsize(model)
            if size > largest:
                largest = size
                _tell(training, self, model, size)
        except Exception as error:
            training.agent.log("what an ONNX Runtime session is was not seen", error)

    session.__init__ = init


def _tell(training: Training, session: Any, model: Any, size: int) -> None:
    """What is so of the session with the largest model."""
    fact = training.agent.fact
    options = session.get_session_options()
    fact("onnxruntime_providers", ", ".join(session.get_providers()))
    fact("onnxruntime_threads", options.intra_op_num_threads or "one for each core")
    fact("onnxruntime_arena", "yes" if options.enable_cpu_mem_arena else "no")
    if isinstance(model, bytes):
        fact("onnxruntime_model", "%d bytes, handed over in memory" % size)
        return
    path = os.path.realpath(os.fspath(model))
    how = "%d of them mapped" % mapped(path) if mapped(path) else "copied"
    fact("onnxruntime_model", "%s, %d bytes, %s" % (os.path.basename(path), size, how))


def mapped(path: str) -> int:
    """Bytes of a file that this process has mapped."""
    total = 0
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            words = line.rstrip("\n").split(None, 5)
            if len(words) == 6 and words[5] == path:
                begin, _, end = words[0].partition("-")
                total += int(end, 16) - int(begin, 16)
    return total
