"""python -m hightide._call FILE calls the function that imagine() put there, in the process that it started."""

from __future__ import annotations

import pickle
import sys
from typing import Any


def main(path: str) -> None:
    """Find the function and call it."""
    with open(path, "rb") as file:
        call = pickle.load(file)
    if "pickled" in call:
        function, arguments, named = pickle.loads(call["pickled"])
    else:
        function = _find(**call["where"])
        arguments, named = pickle.loads(call["with"])
    function(*arguments, **named)


def _find(module: str, file: str, name: str) -> Any:
    if file:  # the program's own: under the name that multiprocessing gives it, so that it does not run as a program
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location("__mp_main__", file)
        assert spec is not None and spec.loader is not None
        found: Any = module_from_spec(spec)
        sys.modules["__mp_main__"] = sys.modules["__main__"] = found
        spec.loader.exec_module(found)
    else:
        from importlib import import_module

        found = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


if __name__ == "__main__":
    main(sys.argv[1])
