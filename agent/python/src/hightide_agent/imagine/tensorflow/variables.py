"""What the variables of TensorFlow that are alive take, by what they are for, on each GPU.

optimizer    what optimizers of Keras keep: moments, the number of steps
parameters   other variables that TensorFlow calls trainable
state        the rest: statistics of batch normalisation, metrics, random numbers

A strategy for several GPUs has a variable for each of them. Bytes are those of shape and type.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Dict, Iterator, Set

OPTIMIZER, PARAMETERS, STATE = "optimizer", "parameters", "state"


def by_purpose() -> Dict[str, Dict[str, int]]:
    """Bytes by device ("GPU:0") and purpose."""
    kind = sys.modules["tensorflow.python.ops.resource_variable_ops"].BaseResourceVariable
    optimizer = getattr(sys.modules.get("keras.src.optimizers.base_optimizer"), "BaseOptimizer", None)
    held = gc.get_objects()
    of_optimizers: Set[int] = set()
    for one in held:
        if optimizer is not None and isinstance(one, optimizer):
            of_optimizers.update(id(part._handle) for variable in one.variables for part in _parts(variable.value))
    sums: Dict[str, Dict[str, int]] = {}
    seen: Set[int] = set()
    for one in held:
        if isinstance(one, kind) and id(one._handle) not in seen and hasattr(one._handle, "numpy"):  # none of a graph
            seen.add(id(one._handle))
            size = one.shape.num_elements()
            if size:
                purpose = STATE
                if id(one._handle) in of_optimizers:
                    purpose = OPTIMIZER
                elif one.trainable:
                    purpose = PARAMETERS
                of = sums.setdefault(one.device.rpartition("device:")[2], {})
                of[purpose] = of.get(purpose, 0) + size * one.dtype.size
    return sums


def _parts(variable: Any) -> Iterator[Any]:
    """The variables of each device that one of a strategy has; else itself."""
    for part in getattr(variable, "values", None) or (variable,):
        if hasattr(part, "_handle"):
            yield part
