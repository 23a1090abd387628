"""What the arguments of a compiled function are for, as far as it is known; nothing is guessed from names or shapes.

optimizer    beneath a state of Optax, opt_state of a TrainState of Flax, a variable of nnx's optimizer
parameters   what jax.grad differentiates by, params of a TrainState, nnx.Param
state        came of an earlier call of the function, and is neither
inputs       never came of the function: batches, weights that are not trained
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Dict, List, Set

from ...agent import Agent
from ...frames import variables
from ...places import is_library

OPTIMIZER, PARAMETERS, STATE, INPUTS = "optimizer", "parameters", "state", "inputs"
STACK = 40  # frames of libraries between the program's call of a function and that of its executable


CALLS = ("cache_miss", "__call__")  # of JAX, and of what wraps it: they have args and kwargs


class Gradients:
    """What jax.grad was asked to differentiate by: arrays, and arguments of functions that are traced."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.arguments: Dict[str, Set[int]] = {}  # by the function, as JAX writes it: numbers of its arguments
        self._arrays: Dict[int, Any] = {}  # by id, weakly

    def install(self, api: Any) -> None:
        """`api`: the module whose value_and_grad calls its vjp."""
        original = api.vjp

        def vjp(fun: Any, *primals: Any, **kwargs: Any) -> Any:
            try:
                for leaf in sys.modules["jax"].tree_util.tree_leaves(primals):
                    self._by(leaf)
            except Exception as error:
                self.agent.log("could not see what is differentiated by", error)
            return original(fun, *primals, **kwargs)

        api.vjp = vjp

    def _by(self, leaf: Any) -> None:
        frame = getattr(getattr(leaf, "_trace", None), "frame", None)
        if frame is not None:
            for number, variable in enumerate(frame.invars):
                if variable is getattr(leaf, "val", None):
                    self.arguments.setdefault(str(frame.debug_info.func_src_info), set()).add(number)
        elif hasattr(type(leaf), "addressable_shards"):
            arrays, key = self._arrays, id(leaf)
            arrays[key] = weakref.ref(leaf, lambda reference: _dropped(arrays, key, reference))

    def has(self, array: Any) -> bool:
        """Whether an array was differentiated by, outside of any function that was traced."""
        known = self._arrays.get(id(array))
        return known is not None and known() is array


def _dropped(arrays: Dict[int, Any], key: int, reference: Any) -> None:
    if arrays.get(key) is reference:
        del arrays[key]


def purposes(frame: Any) -> Dict[int, str]:
    """Of arrays by id: what those are for that types tell of, among the arguments of the call that runs `frame`.

    JAX gets them as a tree. A library that wraps its jit, as Equinox and Flax nnx do, gives it arrays alone, and has
    the tree in a frame further out.
    """
    found: Dict[int, str] = {}
    for _ in range(STACK):
        if frame is None or not is_library(frame.f_code.co_filename):
            break
        if frame.f_code.co_name in CALLS:
            held = variables(frame)
            _look([held.get("args"), held.get("kwargs")], "", found)
        frame = frame.f_back
    return found


def _look(tree: Any, purpose: str, found: Dict[int, str]) -> None:
    util = sys.modules["jax"].tree_util

    def told(node: Any) -> bool:
        return bool(_of_type(node)) or _is_train_state(node)

    leaves: List[Any] = util.tree_leaves(tree, is_leaf=None if purpose else told)
    for leaf in leaves:
        if not purpose and _is_train_state(leaf):
            _look(leaf.params, PARAMETERS, found)
            _look(leaf.opt_state, OPTIMIZER, found)
        elif not purpose and _of_type(leaf):
            _look(leaf, _of_type(leaf), found)
        elif purpose:
            found[id(leaf)] = purpose


def _of_type(node: Any) -> str:
    """What everything beneath a node is for, by its type."""
    kind = type(node)
    module = kind.__module__
    if module.partition(".")[0] == "optax":
        return OPTIMIZER
    if module.startswith("flax.nnx"):
        return PARAMETERS if kind.__name__ == "Param" else OPTIMIZER if kind.__name__.startswith("Opt") else ""
    return ""


def _is_train_state(node: Any) -> bool:
    return type(node).__module__.startswith("flax.training") or all(
        hasattr(node, name) for name in ("params", "opt_state", "apply_gradients")
    )
