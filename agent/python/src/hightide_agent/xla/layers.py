"""jax.checkpoint around what a model of Flax nnx, Equinox or Haiku repeats: modules of one class beside each other.

    a class of the program's is made ─▶ its __call__ is met
    a module is called within one that has several of its class, which hold modules ─▶ nnx.remat, eqx.filter_checkpoint
    Haiku: its own interceptors ─▶ hk.remat

What is no array, as `train=True`, is kept out of what is traced. Modules of the libraries themselves are none.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, Tuple

Call = Callable[..., Any]

NUMBERED = re.compile(r"_\d+\Z")


class Layers:
    """Those of a library whose modules hold each other. again(call, module, args, kwargs) calls one so that it is
    computed again in the backward pass."""

    def __init__(self, base: type, library: str, what: str, told: Callable[[str], None], again: Call) -> None:
        self.base, self.library, self.what = base, library + ".", what
        self.told = told
        self.again = again
        self._here = threading.local()

    def meet(self, call: Call) -> Call:
        """A __call__ of the program's, seen."""

        @functools.wraps(call)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            outer: List[Any] = self._here.__dict__.setdefault("outer", [])
            repeated = bool(outer) and outer[-1] is not None and self._repeated(outer[-1], module)
            outer.append(None if repeated else module)  # of what is computed again nothing is, once more
            try:
                if not repeated:
                    return call(module, *args, **kwargs)
                self.told("each %s of %s" % (type(module).__name__, self.what))
                return self.again(call, module, args, kwargs)
            finally:
                outer.pop()

        return __call__

    def _repeated(self, parent: Any, module: Any) -> bool:
        alike = sum(type(one) is type(module) for one in self._held(parent))
        return alike > 1 and any(True for _ in self._held(module))

    def _held(self, thing: Any, depth: int = 3) -> Iterator[Any]:
        """Modules that one holds, also in lists, dicts and the library's own containers."""
        if isinstance(thing, (list, tuple)):
            values = list(thing)
        else:
            values = list((thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})).values())
        for value in values:
            if isinstance(value, self.base):
                yield value
            container = isinstance(value, (list, tuple, dict)) or (
                isinstance(value, self.base) and type(value).__module__.startswith(self.library)
            )
            if container and depth > 1:
                yield from self._held(value, depth - 1)

    def own(self, module: str) -> bool:
        """Whether a class of this module is the library's."""
        return module.startswith(self.library)


def nnx(jax: Any, module: Any, told: Callable[[str], None]) -> None:
    """Classes of Flax nnx that are made from here on. module: flax.nnx, once it is whole."""
    kept = getattr(module, "Pytree", None) or module.Object, module.Variable  # by version

    def again(call: Call, its: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs), is_leaf=lambda leaf: isinstance(leaf, kept))
        traced = [at for at, leaf in enumerate(leaves) if isinstance(leaf, kept) or _array(leaf)]

        def body(its: Any, *given: Any) -> Any:
            filled = list(leaves)
            for at, leaf in zip(traced, given):
                filled[at] = leaf
            again, named = jax.tree_util.tree_unflatten(tree, filled)
            return call(its, *again, **named)

        return module.remat(body, prevent_cse=True)(its, *[leaves[at] for at in traced])

    layers = Layers(module.Module, "flax", "Flax (nnx.remat)", told, again)
    made = module.Module.__init_subclass__.__func__

    def begun(cls: Any, /, **named: Any) -> None:
        made(cls, **named)
        call = cls.__dict__.get("__call__")
        if call is not None and not layers.own(cls.__module__):
            cls.__call__ = layers.meet(call)

    module.Module.__init_subclass__ = classmethod(begun)


def equinox(module: Any, told: Callable[[str], None]) -> None:
    """Classes of Equinox that are made from here on. module: equinox, once it is whole."""

    def again(call: Call, its: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        def body(its: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
            return call(its, *args, **kwargs)

        return module.filter_checkpoint(body, prevent_cse=True)(its, args, kwargs)

    layers = Layers(module.Module, "equinox", "Equinox (eqx.filter_checkpoint)", told, again)
    kind: Any = type(module.Module)
    made = kind.__new__

    @functools.wraps(made)
    def __new__(mcs: Any, name: str, bases: Any, members: Dict[str, Any], *more: Any, **named: Any) -> Any:
        if callable(members.get("__call__")) and not layers.own(str(members.get("__module__"))):
            members = {**members, "__call__": layers.meet(members["__call__"])}
        return made(mcs, name, bases, members, *more, **named)

    kind.__new__ = __new__


class Haiku:
    """Modules of Haiku, whose parameters have names: model/~/block, model/~/block_1."""

    def __init__(self, jax: Any, module: Any, told: Callable[[str], None]) -> None:
        self.jax, self.module = jax, module
        self.frame: Call = sys.modules["haiku._src.base"].current_frame
        self.told = told
        self._inside = False
        self._calls: Any = None

    def install(self) -> None:
        """Meet all calls of modules from here on, on this thread."""
        self._calls = self.module.intercept_methods(self._called)  # which ends where nothing holds it
        self._calls.__enter__()

    def _called(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any], context: Any) -> Any:
        if self._inside or context.method_name != "__call__" or not self._repeated(context.module.module_name):
            return call(*args, **kwargs)
        leaves, tree = self.jax.tree_util.tree_flatten((args, kwargs))
        traced = [at for at, leaf in enumerate(leaves) if _array(leaf)]

        def body(*arrays: Any) -> Any:
            filled = list(leaves)
            for at, array in zip(traced, arrays):
                filled[at] = array
            again, named = self.jax.tree_util.tree_unflatten(tree, filled)
            return call(*again, **named)

        self.told("each %s of Haiku (hk.remat)" % type(context.module).__name__)
        self._inside = True
        try:
            return self.module.remat(body, prevent_cse=True)(*[leaves[at] for at in traced])
        finally:
            self._inside = False

    def _repeated(self, name: str) -> bool:
        """Whether parameters are there of several such modules, which have modules in them."""
        names = list(self.frame().params)
        stem = NUMBERED.sub("", name)
        alike = re.compile(re.escape(stem) + r"(_\d+)?/")
        beside = {found[0] for found in map(alike.match, names) if found}
        return len(beside) > 1 and name + "/" in beside


def _array(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")
