"""TensorFlow: steps of loops of one's own, functions that are traced again, and whose arena its tensors are in.

    a tf.function that applies gradients when it is traced ─▶ each of its calls ends a step
    gradients in eager code ─▶ backward        the next batch of a dataset in Python ─▶ data
    each tracing of a tf.function ─▶ traces.py      get_memory_info of GPUs that were started ─▶ counters

Keras has an adapter of its own, for fit and for its optimizers in eager loops. With oneDNN, which is on by itself on
some processors, tensors on the host come from an arena of its own. There malloc sees only that arena grow, on
whatever line asked for more than it had.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
import weakref
from types import FunctionType
from typing import Any, Callable, Dict, Iterator, List, Optional

from .. import oom
from ..allocators import ALLOCATED
from ..calls import given
from ..masking import mask
from ..places import is_library, text_of
from ..traces import Traces
from ..tracker import BACKWARD, DATA, NEVER
from ..training import Training

Watch = Callable[[str, Callable[[Any], None]], None]

POLYMORPHIC = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
TRACING = "tensorflow.python.eager.polymorphic_function.tracing_compilation"


def install(training: Training, tensorflow: Any, watch: Watch) -> None:
    """Observe this process's use of the TensorFlow that has just been imported."""
    port = sys.modules.get("tensorflow.python.util._pywrap_util_port")
    if port is not None and port.IsMklEnabled():
        training.agent.fact("tensorflow_arena", "oneDNN")
    training.out_of_memory(lambda error: _out_of_memory(tensorflow, error))
    oom.said["tensorflow"] = _said
    functions = Functions(training)
    context = sys.modules["tensorflow.python.eager.context"]
    eagerly = context.executing_eagerly
    training.install_parts(
        "TensorFlow",
        ("compiled functions", lambda: watch(POLYMORPHIC, functions.install)),
        ("tracings", lambda: watch(TRACING, lambda m: _tracings(training, m))),
        ("optimizers", lambda: watch("keras.src.optimizers.base_optimizer", lambda m: functions.mark(m, eagerly))),
        ("gradients", lambda: _gradients(training, tensorflow.GradientTape, eagerly)),
        ("datasets", lambda: watch("tensorflow.python.data.ops.iterator_ops", lambda m: _batches(training, m))),
        (
            "devices",
            lambda: training.at_step_end(Devices(training, tensorflow, context).step_ended),
        ),
    )
    if os.environ.get("HIGHTIDE_IMAGINE") == "1":
        from ..imagine import tensorflow as imagined

        imagined.install(training, tensorflow, watch)


class Devices:
    """The GPUs, from the end of the first step on: TensorFlow starts all that are visible with the first operation."""

    def __init__(self, training: Training, tensorflow: Any, context: Any) -> None:
        self.training, self.config, self.context = training, tensorflow.config, context
        self._looked = False
        training.agent.on_renew.append(self._forget)

    def _forget(self) -> None:
        self._looked = False

    def step_ended(self, step: int) -> int:
        """Count what is allocated on each, from now on; what it holds of a device beside that it does not say."""
        context = self.context.context_safe()
        if context is None or not context._initialized:  # the steps are another framework's
            return step * 10
        if not self._looked:
            self._looked = True
            names = [device.name.rpartition("device:")[2] for device in self.config.list_logical_devices("GPU")]
            info = self.config.experimental.get_memory_info
            if names:
                called = "cuda" if os.environ.get("HIGHTIDE_IMAGINE") == "1" else "gpu"  # as what imagines it calls it
                told = [(name, name.lower().replace("gpu", called)) for name in names]
                self.training.allocator(
                    "tensorflow", lambda: [(as_told, ALLOCATED, int(info(name)["current"])) for name, as_told in told]
                )
                self._grows()
        return NEVER

    def _grows(self) -> None:
        """Tell whether it takes memory as needed, or most of a device at the start, as it does by itself."""
        devices = self.config.list_physical_devices("GPU")
        growth = {bool(self.config.experimental.get_memory_growth(device)) for device in devices}
        self.training.agent.fact("tensorflow_memory_growth", "yes" if growth == {True} else "no")


class Functions:
    """The tf.functions that take a training step: those in whose tracing an optimizer is applied."""

    def __init__(self, training: Training) -> None:
        self.steps = training.steps
        self.step_functions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._outermost = threading.local()
        self._called: List[Any] = []  # the outermost of each thread

    def install(self, module: Any) -> None:
        """Follow the calls of all tf.functions."""
        original, outermost = module.Function.__call__, self._outermost
        step_functions, steps, called = self.step_functions, self.steps, self._called

        @functools.wraps(original)
        def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if getattr(outermost, "function", None) is not None:
                return original(function, *args, **kwargs)
            outermost.function = function
            called.append(function)
            try:
                result = original(function, *args, **kwargs)
            finally:
                outermost.function = None
                called.remove(function)
            if function in step_functions:
                steps.passed(function)
            return result

        module.Function.__call__ = call

    def mark(self, base_optimizer: Any, eagerly: Callable[[], bool]) -> None:
        """Note the function that is being traced when an optimizer is applied."""
        original, outermost, step_functions = base_optimizer.BaseOptimizer.apply, self._outermost, self.step_functions

        @functools.wraps(original)
        def apply(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
            function = getattr(outermost, "function", None) or self._of_replica()
            if function is not None and not eagerly() and not _of_keras(function):
                step_functions.add(function)
            return original(optimizer, *args, **kwargs)

        base_optimizer.BaseOptimizer.apply = apply

    def _of_replica(self) -> Any:
        """The function that a strategy traces in a thread for each replica, where it can be no other."""
        replica = type(threading.current_thread()).__name__ == "_MirroredReplicaThread"
        return self._called[0] if replica and len(self._called) == 1 else None


def _of_keras(function: Any) -> bool:
    """Whether it is the training function that fit made, whose batches Keras's adapter counts."""
    return str(getattr(function.python_function, "__module__", "")).startswith("keras.src.")


def _tracings(training: Training, module: Any) -> None:
    traces = Traces(training.agent, "tensorflow")
    original = module._create_concrete_function

    @functools.wraps(original)
    def create(*args: Any, **kwargs: Any) -> Any:
        try:
            python = given(args, kwargs, 3, "tracing_options").python_function
            code = getattr(_unwrapped(python), "__code__", None)
            if code is not None:
                function_type = given(args, kwargs, 0, "function_type")
                traces.traced(code, code.co_name, code.co_filename, code.co_firstlineno, _arguments(function_type))
        except Exception as error:
            training.agent.log("could not see what TensorFlow traces", error)
        return original(*args, **kwargs)

    module._create_concrete_function = create


def _unwrapped(function: Any) -> Any:
    """What the user wrote, under TensorFlow's decorators and partials, and in its closures, as of Dataset.map."""
    for _ in range(16):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        inner = inner or getattr(function, "__func__", None)
        if inner is None or inner is function:
            break
        function = inner
    return next((inner for inner in _enclosed(function, 3) if not is_library(inner.__code__.co_filename)), function)


def _enclosed(function: Any, levels: int) -> Iterator[Any]:
    """A function, and those that it has in its closure."""
    if type(function) is FunctionType:
        yield function
        for cell in (function.__closure__ or ()) if levels else ():
            try:
                yield from _enclosed(cell.cell_contents, levels - 1)
            except ValueError:  # empty
                continue


def _arguments(function_type: Any) -> Dict[str, str]:
    """What each argument was traced for: a type of tensors, or the very value of anything else."""
    texts = {}
    for name, parameter in function_type.parameters.items():
        text = str(parameter.type_constraint)
        found = re.match(r"TensorSpec\(shape=(.*?), dtype=tf\.(\w+)", text)
        if found is not None:
            text = "%s%s" % (found.group(2), found.group(1))
        found = re.match(r"Literal\[(.*)\]$", text)
        texts[name] = found.group(1) if found is not None else text
    return texts


def _gradients(training: Training, tape: Any, eagerly: Callable[[], bool]) -> None:
    original = tape.gradient
    backward = training.phase(BACKWARD, original)

    @functools.wraps(original)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return backward(*args, **kwargs) if eagerly() else original(*args, **kwargs)

    tape.gradient = gradient


def _batches(training: Training, iterators: Any) -> None:
    iterators.OwnedIterator.__next__ = training.phase(DATA, iterators.OwnedIterator.__next__)


def _out_of_memory(tensorflow: Any, error: BaseException) -> Optional[oom.Shortage]:
    """Its allocators say the shape and type of the tensor, and the device."""
    if not isinstance(error, tensorflow.errors.ResourceExhaustedError):
        return None
    text = text_of(error)
    device = re.search(r"device:(CPU|GPU):(\d+)", text)
    name = "cpu" if device is None or device.group(1) == "CPU" else "gpu:%s" % device.group(2)
    return "tensorflow", name, _asked(tensorflow, text)


def _said(error: BaseException) -> Dict[str, Any]:
    """What ran out, in which operation; and the line of it, where a graph knows that: the call is lines away."""
    text = str(error)
    words = re.search(
        r"OOM when allocating tensor with shape\s*\[[^\]]*\] and type \w+|failed to allocate memory", text
    )
    operation = re.search(r"Detected at node (\S+) defined at|\{\{node ([^}]+)\}\}|\[Op:(\w+)\]", text)
    if words is None or operation is None:
        return {}
    found: Dict[str, Any] = {
        "text": mask("%s, in the operation %s" % (words.group(), next(filter(None, operation.groups()))))
    }
    for file, line, function in re.findall(r'File "([^"\n]+)", line (\d+), in (\S+)', text):
        if not is_library(file) and "hightide_agent" not in file:
            found.update(file=file, line=int(line), function=function)
    return found


def _asked(tensorflow: Any, text: str) -> Optional[int]:
    """Bytes of a "tensor with shape[64,128] and type float"."""
    found = re.search(r"shape\s*\[([\d,\s]*)\] and type (\w+)", text)
    if found is None:
        return None
    kind = {"float": "float32", "double": "float64", "half": "float16"}.get(found.group(2), found.group(2))
    size = int(tensorflow.as_dtype(kind).size)
    for length in found.group(1).replace(" ", "").split(","):
        size *= int(length or 1)
    return size
