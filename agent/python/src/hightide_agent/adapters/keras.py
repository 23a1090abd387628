"""Keras 3, on any of its backends: steps and phases of fit, evaluate, predict and of loops of one's own.

    fit: CallbackList.on_train_batch_end ─▶ the end of a step         evaluate, predict ─▶ evaluation
    train_on_batch ─▶ the same              save, export ─▶ checkpoint
    a loop of one's own: Optimizer.apply, where it is not part of something compiled ─▶ optimizer, the end of a step

With a compiled model (the default) a batch is one call into the backend. What goes forward and back in there is not
seen from Python, so such a step has no phases of its own. PyTorch's adapter sees those of the torch backend.
With steps_per_execution=k a step here is k of the optimizer's.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, Tuple

from ..tracker import CHECKPOINT, EVALUATION, OPTIMIZER
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]
Function = Callable[..., Any]

FIRST = (1, 3)  # steps whose end is looked at; then every tenfold of 10


def install(training: Training, keras: Any, watch: Watch) -> None:
    """Observe this process's use of keras, which has just been imported."""
    training.agent.framework("keras", str(keras.__version__), backend=str(keras.config.backend()))
    models = Models(training)
    if keras.config.backend() != "torch":  # whose adapter counts the same
        training.at_step_end(models.step_ended)
    training.install_parts(
        "Keras",
        ("batches of fit", lambda: watch("keras.src.callbacks.callback_list", lambda m: _fit(training, models, m))),
        ("batches of a loop", lambda: _on_batch(training, models, keras.Model)),
        ("evaluations", lambda: _phases(training, keras.Model, EVALUATION, ("evaluate", "predict"))),
        ("checkpoints", lambda: _phases(training, keras.Model, CHECKPOINT, ("save", "save_weights", "export"))),
        ("optimizers", lambda: watch("keras.src.optimizers.base_optimizer", lambda m: _optimizers(training, m))),
    )


def _fit(training: Training, models: Models, callback_list: Any) -> None:
    """A batch ends once all callbacks were called."""
    original = callback_list.CallbackList.on_train_batch_end

    @functools.wraps(original)
    def on_train_batch_end(callbacks: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = original(callbacks, *args, **kwargs)
        model = _model(callbacks)
        models.trained(model)
        training.steps.passed(model)
        return result

    callback_list.CallbackList.on_train_batch_end = on_train_batch_end


def _model(callbacks: Any) -> Any:
    """The model that a list of callbacks is for; without one, the list."""
    for callback in callbacks.callbacks:
        model = getattr(callback, "_model", None)
        if model is not None:
            return model
    return callbacks


def _on_batch(training: Training, models: Models, kind: Any) -> None:
    """Model.train_on_batch, which the backend's trainer defines."""
    owner = _defines(kind, "train_on_batch")
    original = owner.train_on_batch

    @functools.wraps(original)
    def train_on_batch(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = original(model, *args, **kwargs)
        models.trained(model)
        training.steps.passed(model)
        return result

    owner.train_on_batch = train_on_batch


def _phases(training: Training, kind: Any, phase: int, names: Iterable[str]) -> None:
    for name in names:
        owner = _defines(kind, name)
        setattr(owner, name, training.phase(phase, getattr(owner, name)))


def _defines(kind: Any, name: str) -> Any:
    """The class that gives `kind` a method."""
    return next(owner for owner in kind.__mro__ if name in owner.__dict__)


def _optimizers(training: Training, base: Any) -> None:
    """Optimizer.apply, called once for each step in a loop of one's own; in what is being compiled, never for one."""
    original = base.BaseOptimizer.apply
    stepping = training.step(original)
    compiling = _compiling()
    tracker = training.tracker

    @functools.wraps(original)
    def apply(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
        if compiling():
            return original(optimizer, *args, **kwargs)
        if tracker.inside(OPTIMIZER):  # one inside another: LossScaleOptimizer
            return original(optimizer, *args, **kwargs)
        return stepping(optimizer, *args, **kwargs)

    base.BaseOptimizer.apply = apply


def _compiling() -> Callable[[], bool]:
    """A function that tells whether what runs now is being traced, for any backend."""
    scope = sys.modules["keras.src.backend.common.stateless_scope"].in_stateless_scope
    tensorflow = sys.modules.get("tensorflow.python.eager.context")
    if tensorflow is None or sys.modules["keras.src.backend.config"].backend() != "tensorflow":
        return scope  # type: ignore[no-any-return]
    eagerly = tensorflow.executing_eagerly
    return lambda: scope() or not eagerly()


class Models:
    """What the model takes that was trained last: by layer, and with what its optimizer keeps."""

    def __init__(self, training: Training) -> None:
        self.agent = training.agent
        self.modules = training.tracker.modules
        self._last: Callable[[], Any] = lambda: None  # weak references: a model is its program's
        self._described: Callable[[], Any] = lambda: None  # the model whose layers were told
        self._next = 10

    def trained(self, model: Any) -> None:
        """A batch of this model has ended."""
        self._last = weakref.ref(model)

    def step_ended(self, step: int) -> int:
        """Count, if it is time; when it will be."""
        if step in FIRST or step >= self._next:
            if step >= self._next:
                self._next *= 10
            model = self._last()
            try:
                if model is not None:
                    self._layers(model)
                    self._count(model, step)
            except Exception as error:
                self.agent.log("could not count the model's bytes", error)
        return min([first for first in FIRST if first > step] + [self._next])

    def _layers(self, model: Any) -> None:
        if self._described() is model:
            return
        self._described = weakref.ref(model)
        for layer in model.layers:
            if not self.modules.full() and layer.weights:
                trained = _bytes(layer.trainable_weights)
                self.modules.describe(layer.name, type(layer).__name__, trained, _bytes(layer.weights) - trained)
        self.modules.tell()

    def _count(self, model: Any, step: int) -> None:
        optimizer = getattr(model, "optimizer", None)
        state = optimizer.variables if optimizer is not None else ()
        for device, (parameters, of_optimizer) in _by_device(model.trainable_variables, state).items():
            self.agent.record(
                {"type": "model", "step": step, "device": device, "parameter_bytes": parameters,
                 "optimizer_bytes": of_optimizer}
            )  # fmt: skip


def _by_device(parameters: Iterable[Any], state: Iterable[Any]) -> Dict[str, Tuple[int, int]]:
    """Bytes of parameters and of the optimizer's state, by device."""
    sums: Dict[str, Tuple[int, int]] = {}
    for device, size in _sizes(parameters):
        held = sums.get(device, (0, 0))
        sums[device] = held[0] + size, held[1]
    for device, size in _sizes(state):
        held = sums.get(device, (0, 0))
        sums[device] = held[0], held[1] + size
    return sums


def _sizes(variables: Iterable[Any]) -> Iterator[Tuple[str, int]]:
    for variable in variables:
        yield _device(variable), _size(variable)


def _bytes(variables: Iterable[Any]) -> int:
    return sum(_size(variable) for variable in variables)


def _size(variable: Any) -> int:
    """Bytes of a variable, from its shape and the name of its type: float32, bfloat16, float8_e4m3fn, bool."""
    bits = re.search(r"\d+", str(variable.dtype))
    size = int(bits.group()) // 8 if bits is not None else 1
    for length in variable.shape:
        size *= int(length)
    return size


def _device(variable: Any) -> str:
    """Where a variable's value is: cpu, gpu:0, cuda:0."""
    try:
        device = variable.value.device
    except Exception:  # while fit runs on JAX, the variables have none
        device = sys.modules["jax"].local_devices()[0]
    found = re.search(r"(CPU|GPU|TPU|cuda|cpu)[:_]?(\d*)", str(device))
    kind, number = (found.group(1).lower(), found.group(2)) if found is not None else ("cpu", "")
    return kind if kind == "cpu" else "%s:%s" % (kind, number or "0")
