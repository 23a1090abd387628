"""Lines of the program: which are the user's own, and where an exception came from."""

from __future__ import annotations

import os
import sys

from .masking import mask

TYPE_CHECKING = False  # for type checkers only: see ending.py
if TYPE_CHECKING:
    from typing import Any

_WINDOWS = os.sep == "\\"


def _folders(prefixes: set[str], windows: bool) -> tuple[str, ...]:
    """What the files of Python's own library, and those that start installed programs, begin with. The library of
    Windows' embeddable Python is one archive."""
    inside = ("/Lib/", "/python3", "/Scripts/") if windows else ("/lib/python", "/bin/")
    return tuple(prefix.replace("\\", "/") + folder for prefix in prefixes for folder in inside)


_PYTHONS = _folders({sys.base_prefix, sys.prefix}, _WINDOWS)
_HASH = frozenset("abcdefghijklmnopqrstuvwxyz234567")


def text_of(error: BaseException) -> str:
    """The exception's message, secrets masked."""
    try:
        return mask(str(error)[:4000])
    except Exception:
        return ""


def where(error: BaseException) -> tuple[str, int, str]:
    """File, line and function of the innermost frame that is the user's own, else the innermost."""
    found, seen = ("", 0, ""), False
    trace: Any = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        users = is_users(code, trace.tb_frame.f_globals)
        if users or not seen:
            found = (code.co_filename, trace.tb_lineno or 0, getattr(code, "co_qualname", code.co_name))
        seen = seen or users
        trace = trace.tb_next
    return found


def is_library(filename: str) -> bool:
    """Whether a source file belongs to Python or an installed package, or was generated, and is not the user's."""
    filename = _slashed(filename)
    return (
        "site-packages" in filename
        or "dist-packages" in filename
        or filename.startswith("<")
        or filename.startswith(_PYTHONS)
        or "/hightide_agent/" in filename
        or is_compiled(filename)
    )


def _slashed(filename: str) -> str:
    return filename.replace("\\", "/") if _WINDOWS else filename


def is_users(code: Any, variables: Any) -> bool:
    """Whether code is the user's own, by its file and its globals: a program may have no file."""
    if code.co_filename.startswith("<"):
        return without_file(variables)
    return not is_library(code.co_filename)


def without_file(variables: Any) -> bool:
    """Whether these are the globals of a program without a file: of python -c, standard input or a notebook."""
    main = sys.modules.get("__main__")
    return main is not None and variables is main.__dict__ and variables.get("__file__") is None


def is_compiled(filename: str) -> bool:
    """Whether torch.compile wrote the file: wherever its cache is, it is named by a hash. Or TensorFlow's autograph."""
    name = _slashed(filename).rpartition("/")[2]
    if name.startswith("__autograph_generated_file"):
        return True
    return len(name) == 55 and name[0] == "c" and name[52:] == ".py" and _HASH.issuperset(name[1:52])


# Libraries that run the modules and loops of others: those say whose line it is.
# As `carriers` in internal/usage/sites.go.
CARRIERS = frozenset(
    ["torch", "functorch", "torchgen", "triton", "numpy", "lightning", "lightning_fabric", "pytorch_lightning",
     "accelerate", "deepspeed", "peft", "bitsandbytes", "jsonargparse", "click", "typer", "fire", "hydra",
     "docstring_parser"]
)  # fmt: skip


def caller(frame: Any) -> tuple[str, int, str]:
    """File, line and function of the innermost frame, from this one outwards, that is the user's own. Of a program that
    was installed, the innermost of the outermost library that has a model there, else of the outermost one."""
    innermost, owner, forward = frame, "", False
    firsts: dict[str, Any] = {}
    while frame is not None:
        code = frame.f_code
        if frame.f_back is None and "/hightide_agent/" in _slashed(code.co_filename):
            return "", 0, ""  # a thread without Python, as of autograd, in which only a function of ours runs
        if is_users(code, frame.f_globals):
            return code.co_filename, frame.f_lineno or 0, getattr(code, "co_qualname", code.co_name)
        package = _package(code.co_filename)
        if package and package not in CARRIERS:
            firsts.setdefault(package, frame)
            if code.co_name == "forward" or not forward:
                owner, forward = package, forward or code.co_name == "forward"
        frame = frame.f_back
    found = firsts.get(owner, innermost)
    if found is None:
        return "", 0, ""
    return found.f_code.co_filename, found.f_lineno or 0, found.f_code.co_name


def _package(filename: str) -> str:
    """The installed library that a file is of; "" for Python's own."""
    filename = _slashed(filename)
    for folder in ("/site-packages/", "/dist-packages/"):
        _, found, inside = filename.rpartition(folder)
        if found:
            name = inside.partition("/")[0]
            return name[:-3] if name.endswith(".py") else name
    return ""
