"""OpenVINO: each call of a compiled model is a step, and all of it is the forward pass.

Requests that run in the background (start_async) are no steps: when one begins and ends is the runtime's. What it
keeps beside the heap it does not tell Python.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Dict

from ..inference import Sessions
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]


def install(training: Training, openvino: Any, watch: Watch) -> None:
    """Observe this process's use of openvino, which has just been imported."""
    training.agent.framework("openvino", str(openvino.__version__).partition("-")[0])
    sessions = Sessions(training, "openvino")

    def compiled(model: Any, read: Any) -> None:
        """Of a model that a file was read for, what it is; of one that the program made, nothing stands on disk."""
        path = getattr(read, "hightide_path", read)
        if isinstance(path, (str, os.PathLike)):
            sessions.loaded(lambda: _weights(os.fspath(path)), lambda: _facts(model))

    training.install_parts(
        "OpenVINO",
        ("calls of models", lambda: sessions.calls(openvino.InferRequest, ("infer",))),
        ("files of models", lambda: _after(openvino.Core, "read_model", _remember)),
        ("models", lambda: _after(openvino.Core, "compile_model", compiled)),
    )


def _after(kind: Any, name: str, look: Callable[[Any, Any], None]) -> None:
    """Have a method's result, and the model that it was given, be looked at."""
    original = getattr(kind, name)

    @functools.wraps(original)
    def call(core: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(core, model, *args, **kwargs)
        look(result, model)
        return result

    setattr(kind, name, call)


def _remember(model: Any, path: Any) -> None:
    if isinstance(path, (str, os.PathLike)):
        model.hightide_path = path


def _weights(path: str) -> str:
    """Of a model in two files the one that has the weights."""
    weights = os.path.splitext(path)[0] + ".bin"
    return weights if path.endswith(".xml") and os.path.exists(weights) else path


def _facts(model: Any) -> Dict[str, Any]:
    told: Dict[str, Any] = {"devices": ", ".join(model.get_property("EXECUTION_DEVICES"))}
    for name, key in (("threads", "INFERENCE_NUM_THREADS"), ("streams", "NUM_STREAMS")):
        value = model.get_property(key)
        told[name] = int(value) if isinstance(value, (int, str)) and str(value).isdigit() else str(value)
    return told
