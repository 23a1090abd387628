"""Functions that are jitted donate arguments that somebody names beside those that the program does."""

from __future__ import annotations

import functools
from typing import Any, Callable, Collection, List


def install(pjit: Any, wanted: Callable[[Any], Collection[str]], told: Callable[[str, List[str]], None]) -> None:
    """`wanted` names arguments of a function by its code; `told` gets its name and all that it donates by name."""
    original = pjit._parse_jit_arguments

    @functools.wraps(original)
    def parse(fun: Any, **kwargs: Any) -> Any:
        code: Any = getattr(fun, "__code__", None)
        names = wanted(code) if code is not None else ()
        if names:
            given = kwargs.get("donate_argnames") or ()
            kwargs["donate_argnames"] = tuple(sorted({*names, *([given] if isinstance(given, str) else given)}))
            told(code.co_name, list(kwargs["donate_argnames"]))
        return original(fun, **kwargs)

    pjit._parse_jit_arguments = parse
