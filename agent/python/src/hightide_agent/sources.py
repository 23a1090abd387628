"""The source text of the program, parsed: of files, of python -c, of what was typed in or is a notebook's cell."""

from __future__ import annotations

import ast
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

MAX_SOURCE = 1 << 20  # bytes of a file that is parsed
MAX_CELLS = 50  # of a notebook, the newest
COMMAND = "<string>"  # the file of what python -c runs
_TYPED = ("<ipython-input", "<python-input")
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_trees: Dict[str, Any] = {}


class Node(NamedTuple):
    """A node of a file's syntax tree and what it stands in."""

    node: Any
    qualified: str  # name of the enclosing function or class
    in_loop: bool
    functions: Tuple[Any, ...]  # nodes of all enclosing functions, outermost first
    klass: str  # name of the innermost enclosing class
    tests: Tuple[Any, ...]  # of if and while, that hold there, of the same function


def parsed(file: str) -> Any:
    """The tree of a file; None where it cannot be read or parsed."""
    if file not in _trees:
        try:
            text = _source(file)
            _trees[file] = ast.parse(text) if len(text) <= MAX_SOURCE else None
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            _trees[file] = None
    return _trees[file]


def names_one(file: str, words: Sequence[str]) -> bool:
    """Whether the text of a file has one of some words in it; asked first, it saves parsing most files."""
    try:
        text = _source(file)
    except (OSError, ValueError):
        return False
    return any(word.encode() in text for word in words)


def nodes(file: str) -> Iterator[Node]:
    """Every node of a file."""
    tree = parsed(file)
    pending = [Node(tree, "", False, (), "", ())] if tree is not None else []
    while pending:
        at = pending.pop()
        yield at
        node = at.node
        if isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            at = at._replace(
                qualified=(at.qualified + "." if at.qualified else "") + node.name, in_loop=False, tests=()
            )
            if isinstance(node, ast.ClassDef):
                at = at._replace(klass=node.name)
            else:
                at = at._replace(functions=(*at.functions, node))
        elif isinstance(node, _LOOPS):
            at = at._replace(in_loop=True)
        if isinstance(node, (ast.If, ast.While)):
            tested = at._replace(tests=(*at.tests, node.test))
            pending.extend(tested._replace(node=child) for child in node.body)
            pending.extend(at._replace(node=child) for child in (node.test, *node.orelse))
        else:
            pending.extend(at._replace(node=child) for child in ast.iter_child_nodes(node))


def forget() -> None:
    """After a scan: trees are large."""
    _trees.clear()


def first_line(function: Any) -> int:
    """Of a function, decorators included, as its code object has it."""
    return int(min([function.lineno] + [d.lineno for d in function.decorator_list]))


def without_file() -> List[str]:
    """Names by which the code of a program without a file is known: of python -c, or of a notebook's cells."""
    return [COMMAND] + [name for name, _ in _cells() if name.startswith(_TYPED) or "/ipykernel_" in name][-MAX_CELLS:]


def _source(file: str) -> bytes:
    if file == COMMAND:
        return _command()
    for name, entry in _cells():
        if name == file and len(entry) > 2:
            return "".join(entry[2]).encode()
    with open(file, "rb") as source:
        return source.read(MAX_SOURCE + 1)


def _cells() -> List[Tuple[str, Any]]:
    """What was typed in, as the interpreter keeps it for tracebacks."""
    module = sys.modules.get("linecache")
    return list(module.cache.items()) if module is not None else []


def _command() -> bytes:
    """The text of python -c."""
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")
    for number, word in enumerate(words[1:-1], 1):
        if word[:1] == b"-" and word[1:2] != b"-" and word[-1:] == b"c":
            return words[number + 1]
    return b""
