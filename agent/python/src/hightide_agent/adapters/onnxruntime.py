"""ONNX Runtime: each call of a session is a step, and all of it is the forward pass.

What the arena holds the runtime does not tell Python: it is in the heap, where the lines are that call a session.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from ..inference import Sessions
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]
CALLS = ("run", "run_with_iobinding", "run_with_ort_values")


def install(training: Training, onnxruntime: Any, watch: Watch) -> None:
    """Observe this process's use of onnxruntime, which has just been imported."""
    training.agent.framework("onnxruntime", str(onnxruntime.__version__))
    sessions, session = Sessions(training, "onnxruntime"), onnxruntime.InferenceSession
    training.install_parts(
        "ONNX Runtime",
        ("calls of sessions", lambda: sessions.calls(session, CALLS)),
        ("models", lambda: sessions.made(session, lambda path_or_bytes, *_, **__: path_or_bytes, _facts)),
    )


def _facts(session: Any, *_: Any, **__: Any) -> Dict[str, Any]:
    options = session.get_session_options()
    return {
        "providers": ", ".join(session.get_providers()),
        "threads": options.intra_op_num_threads or "one for each core",
        "arena": "yes" if options.enable_cpu_mem_arena else "no",
    }
