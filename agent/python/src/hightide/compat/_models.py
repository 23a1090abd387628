"""Models whose parts are spans: a PyTorch module with its children, a Keras model with what it is asked to do."""

from __future__ import annotations

import functools
import sys
from threading import get_ident
from typing import Any, Dict, List

from ._profiler import Profiler, Stay, wrapped

_kinds: Dict[str, Any] = {}
STEPS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")


def profiled_module(module: Any, name: str, profiler: Profiler) -> Any:
    """The module in one that profiles its forward and that of its direct children.

    Raises:
        TypeError: it is not a torch.nn.Module.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(module, torch.nn.Module):
        raise TypeError(f"{type(module).__name__} is not a torch.nn.Module")
    if "module" not in _kinds:
        _kinds["module"] = _kind(torch)
    return _kinds["module"](module, name or type(module).__name__, profiler)


def _kind(torch: Any) -> Any:
    class ProfiledModule(torch.nn.Module):  # type: ignore[misc]
        """A module whose forward, and that of whose direct children, are profiled."""

        def __init__(self, module: Any, name: str, profiler: Profiler) -> None:
            super().__init__()
            self.module, self.name, self.profiler = module, name, profiler
            self._stays: Dict[int, List[Stay]] = {}  # by thread
            for part, child in module.named_children():
                child.register_forward_pre_hook(functools.partial(self._enter, f"{name}.{part}"))
                child.register_forward_hook(self._leave, always_call=True)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            with Stay(self.profiler, self.name):
                return self.module(*args, **kwargs)

        def _enter(self, name: str, *_: Any) -> None:
            stay = Stay(self.profiler, name)
            self._stays.setdefault(get_ident(), []).append(stay)
            stay.__enter__()

        def _leave(self, *_: Any) -> None:
            stays = self._stays.get(get_ident())
            if stays:
                stays.pop().__exit__(None, None, None)

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("module"), name)

        def get_profile(self) -> Dict[str, Any]:
            """Sums of the module and of its children, by name."""
            calls = self.profiler.calls
            return {part: calls[part].to_dict() for part in calls if part.split(".")[0] == self.name}

    return ProfiledModule


def profiled_keras(model: Any, name: str, profiler: Profiler) -> Any:
    """The same Keras model; what it is asked to do (fit, predict, …) is profiled from now on.

    Raises:
        TypeError: it is not a model of Keras.
    """
    if not hasattr(model, "layers") or not hasattr(model, "fit"):
        raise TypeError(f"{type(model).__name__} is not a Keras model")
    called = name or getattr(model, "name", None) or type(model).__name__
    for step in STEPS:
        method = getattr(model, step, None)
        if callable(method) and step not in vars(model):
            object.__setattr__(model, step, wrapped(method, f"{called}.{step}", lambda: profiler))
    return model
