"""A model of the user's own: module:function, called without arguments, as `hightide fit` calls it."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from .._fit import names
from .._fit.options import Options as FitOptions
from .options import Built, Options, Unknown


def check(model: str) -> None:
    """Refuse a name that leads nowhere, told without importing a framework.

    Raises:
        Unknown: it does.
    """
    try:
        names.check(FitOptions(model=model))
    except names.Unknown as error:
        raise Unknown(str(error), error.hint) from error


def build(options: Options) -> Built:
    """The step that a function returns, for any framework.

    Raises:
        Unknown: there is no such function, or it returns something else.
    """
    module, _, function = options.model.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        step: Any = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError) as error:
        raise Unknown(f"{options.model}: {error}") from error
    if not callable(step):
        raise Unknown(f"{options.model} returned {type(step).__name__}; wanted is a function step(batch)")
    return Built(step, None)
