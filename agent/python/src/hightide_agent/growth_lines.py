"""The line where a container grows, from the source text of the program.

Looks for `name.append(…)` and its kin, `name += …`, `name[…] = …`, and for tensors `name = name + …`;
failing that, the line that first assigns the name.
"""

from __future__ import annotations

import ast
import sys
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

GROWERS = frozenset(
    ("append", "appendleft", "extend", "extendleft", "add", "insert", "update", "setdefault", "__setitem__", "push")
)
# What a program calls to make a library's container grow, by the container's name.
CALLED = {
    "_forward_hooks": ("register_forward_hook", "register_module_forward_hook"),
    "_forward_pre_hooks": ("register_forward_pre_hook", "register_module_forward_pre_hook"),
    "_backward_hooks": ("register_hook", "register_full_backward_hook", "register_backward_hook"),
    "_optimizer_step_post_hooks": ("register_step_post_hook",),
    "_optimizer_step_pre_hooks": ("register_step_pre_hook",),
    "_post_accumulate_grad_hooks": ("register_post_accumulate_grad_hook",),
    "param_groups": ("add_param_group",),
    "handlers": ("addHandler",),
    "filters": ("addFilter",),
    "queue": ("put", "put_nowait"),
    "_queue": ("put_nowait", "put"),
    "figs": ("figure", "subplots", "subplot_mosaic"),
    "_children": ("plot", "scatter", "imshow", "bar", "hist", "fill_between", "add_line", "add_artist", "add_patch"),
    "_axstack": ("add_subplot", "add_axes", "subplots"),
}
MAX_SOURCE = 1 << 20  # bytes of a file that is parsed
MAX_CELLS = 50  # of a notebook, the newest
COMMAND = "<string>"  # the file of what python -c runs
_TYPED = ("<ipython-input", "<python-input")
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Place(NamedTuple):
    """A line of a file, in a function; score says how sure it is."""

    file: str
    line: int
    function: str
    score: int
    again: bool = False  # it is assigned what is made of itself


def find(file: str, name: str, attribute: bool, inside: Optional[Tuple[int, str]] = None) -> Optional[Place]:
    """Find where the variable, or with `attribute` the attribute, called name grows in a file.

    Args:
        inside: first line and name of the function whose local it is; None: a global or an attribute.
    Returns:
        The likeliest place, or None where the file cannot be read or never mentions it so.
    """
    tree = _parsed(file)
    if tree is None:
        return None
    best: Optional[Place] = None
    for node, function, in_loop, owners in _walk(tree):
        score = _score(node, name, attribute)
        if not score:
            continue
        if inside is not None:
            if not any(o == inside for o in owners):
                continue
        elif not attribute and score == 1 and function:
            continue  # a local of the same name
        score = score * 4 + 2 * bool(function) + in_loop
        if best is None or score > best.score:
            best = Place(file, getattr(node, "lineno", 0), function, score, _made_of_itself(node, name, attribute))
    return best


def called(file: str, name: str) -> Optional[Place]:
    """Find where a file calls what makes a library's container of that name grow."""
    methods = CALLED.get(name, ())
    tree = _parsed(file) if methods else None
    best: Optional[Place] = None
    for node, function, in_loop, _ in _walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call):
            continue
        to = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        score = 8 + 2 * bool(function) + in_loop
        if to in methods and (best is None or score > best.score):
            best = Place(file, node.lineno, function, score)
    return best


def defined(file: str, name: str) -> Optional[Place]:
    """Find where a file defines a function: its first line, decorators included."""
    tree = _parsed(file)
    for node, qualified, _, _ in _walk(tree) if tree is not None else ():
        if isinstance(node, _FUNCTIONS) and node.name == name:
            first = min([node.lineno] + [d.lineno for d in node.decorator_list])
            return Place(file, first, (qualified + "." if qualified else "") + name, 12)
    return None


_trees: dict[str, Any] = {}


def _parsed(file: str) -> Any:
    if file not in _trees:
        try:
            text = _source(file)
            _trees[file] = ast.parse(text) if len(text) <= MAX_SOURCE else None
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            _trees[file] = None
    return _trees[file]


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


def _walk(tree: Any) -> Iterator[Tuple[Any, str, bool, List[Tuple[int, str]]]]:
    """Every node with its enclosing function's qualified name, whether in a loop, and all enclosing ones."""
    pending: List[Any] = [(tree, "", False, [])]
    while pending:
        node, qualified, in_loop, owners = pending.pop()
        yield node, qualified, in_loop, owners
        if isinstance(node, _FUNCTIONS + (ast.ClassDef,)):
            qualified = (qualified + "." if qualified else "") + node.name
            in_loop = False
            if isinstance(node, _FUNCTIONS):
                first = min([node.lineno] + [d.lineno for d in node.decorator_list])
                owners = owners + [(first, node.name)]
        elif isinstance(node, _LOOPS):
            in_loop = True
        for child in ast.iter_child_nodes(node):
            pending.append((child, qualified, in_loop, owners))


def _score(node: Any, name: str, attribute: bool) -> int:
    """3: makes it grow; 2: makes it grow one level down; 1: defines it; 0: none of these."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GROWERS:
        return 3 if _is(node.func.value, name, attribute) else 2 * _is_below(node.func.value, name, attribute)
    if isinstance(node, ast.AugAssign):
        return 3 if _is(node.target, name, attribute) else 2 * _is_below(node.target, name, attribute)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Subscript) and _is(target.value, name, attribute):
                return 3
            if any(_is(part, name, attribute) for part in _assigned(target)):
                return 3 if _made_of_itself(node, name, attribute) else 1
    return 0


def _assigned(target: Any) -> List[Any]:
    """What an assignment's target names, alone or in a tuple."""
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _made_of_itself(node: Any, name: str, attribute: bool) -> bool:
    """Whether node is `name = f(name)` or `name += …`."""
    if isinstance(node, ast.AugAssign):
        return _is(node.target, name, attribute)
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if not any(_is(part, name, attribute) for target in targets for part in _assigned(target)):
        return False
    return any(_is(part, name, attribute) for part in ast.walk(node.value) if part is not node.value)


def _is(node: Any, name: str, attribute: bool) -> bool:
    if attribute:
        return isinstance(node, ast.Attribute) and node.attr == name
    return isinstance(node, ast.Name) and node.id == name


def _is_below(node: Any, name: str, attribute: bool) -> bool:
    """Whether node is `name[…]`, `name.get(…)` or the like."""
    for _ in range(4):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return False
        if _is(node, name, attribute):
            return True
    return False
