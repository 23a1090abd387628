"""jax.checkpoint around what a model of Flax linen repeats: modules of one kind beside each other, as layers.

    a module is called ─▶ its parent has parameters of several such (Block_0, Block_1) ─▶ flax.linen.remat of this call

Names of parameters stay. A module whose parameters are arrays alone, as a Dense, is none. Arguments that are no arrays,
as `train=True`, are kept out of what is traced.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Mapping, Tuple

NUMBER = re.compile(r"\d+\Z")


class Blocks:
    """Those of this process."""

    def __init__(self, jax: Any, linen: Any, told: Callable[[str], None]) -> None:
        self.jax, self.linen = jax, linen
        self.told = told
        self._inside = False
        self._calls: Any = None

    def install(self) -> None:
        """Meet all calls of modules from here on, on this thread."""
        self._calls = self.linen.intercept_methods(self._called)  # which ends where nothing holds it
        self._calls.__enter__()

    def _called(self, call: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any], context: Any) -> Any:
        module = context.module
        if self._inside or context.method_name != "__call__" or not _repeated(module):
            return call(*args, **kwargs)
        leaves, tree = self.jax.tree_util.tree_flatten((args, kwargs))
        traced = [at for at, leaf in enumerate(leaves) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")]

        def body(its: Any, *arrays: Any) -> Any:
            filled = list(leaves)
            for at, array in zip(traced, arrays):
                filled[at] = array
            again, named = self.jax.tree_util.tree_unflatten(tree, filled)
            return its(*again, **named)

        self.told("each {0} of Flax (nn.remat({0}))".format(type(module).__name__))
        self._inside = True
        try:
            return self.linen.remat(body, prevent_cse=True)(module, *[leaves[at] for at in traced])
        finally:
            self._inside = False


def _repeated(module: Any) -> bool:
    """Whether its parent has parameters of several such modules, which have modules in them."""
    parent, name = module.parent, module.name or ""
    stem = NUMBER.sub("", name)
    if stem == name or getattr(parent, "scope", None) is None:
        return False
    beside = parent.scope.variables().get("params", {})
    alike = [key for key in beside if NUMBER.sub("", key) == stem]
    own = beside.get(name, {})
    return len(alike) > 1 and any(isinstance(one, Mapping) for one in getattr(own, "values", list)())
