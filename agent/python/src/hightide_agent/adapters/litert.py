"""LiteRT (ai_edge_litert, once TensorFlow Lite): each call of an interpreter is a step, all of it the forward pass.

What its arena holds the runtime does not tell Python: it is in the heap.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from ..inference import Sessions
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]


def install(training: Training, litert: Any, watch: Watch) -> None:
    """Observe this process's use of ai_edge_litert, which has just been imported."""
    training.agent.framework("ai_edge_litert", str(litert.__version__))
    sessions = Sessions(training, "litert")

    def loaded(module: Any) -> None:
        training.install_parts(
            "LiteRT",
            ("calls of interpreters", lambda: sessions.calls(module.Interpreter, ("invoke",))),
            ("calls of signatures", lambda: sessions.calls(module.SignatureRunner, ("__call__",))),
            ("models", lambda: sessions.made(module.Interpreter, _model, _facts)),
        )

    watch("ai_edge_litert.interpreter", loaded)


def _model(model_path: Any = None, model_content: Any = None, *_: Any, **__: Any) -> Any:
    return model_content if model_path is None else model_path


def _facts(_: Any, *__: Any, num_threads: Any = None, **___: Any) -> Dict[str, Any]:
    return {"threads": num_threads or "as many as it chooses"}
