"""The statements at which a container grows, from the source text of the program.

    history["states"][step] = x   ─▶  path ("states",) of `history`, what is added: x
    self.log.append((i, x))       ─▶  path () of `.log`, a tuple

For tensors and arrays, `name = f(name)`; failing all that, the line that first assigns the name.
"""

from __future__ import annotations

import ast
from typing import Any, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

from .sources import FUNCTIONS, Node, first_line, nodes

GROWERS = frozenset(
    ("append", "appendleft", "extend", "extendleft", "add", "insert", "update", "setdefault", "__setitem__", "push")
)
# Methods by which other kinds grow.
_METHODS = {
    "queue": frozenset(("put", "put_nowait")),
    "backlog of executor": frozenset(("submit", "map")),
    "exit stack": frozenset(
        ("enter_context", "enter_async_context", "push", "push_async_exit", "callback", "push_async_callback")
    ),
    "index of archive": frozenset(("add", "addfile", "next")),
    "BytesIO": frozenset(("write", "writelines")),
    "StringIO": frozenset(("write", "writelines")),
    "array.array": GROWERS | {"fromlist", "frombytes", "fromfile", "fromunicode"},
    "backlog of pool": frozenset(("apply_async", "map_async", "starmap_async", "imap", "imap_unordered")),
}
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
    "figs": ("figure", "subplots", "subplot_mosaic"),
    "_children": ("plot", "scatter", "imshow", "bar", "hist", "fill_between", "add_line", "add_artist", "add_patch"),
    "__warningregistry__": ("warn", "warn_explicit"),
    "_axstack": ("add_subplot", "add_axes", "subplots"),
}
_FILES = frozenset(("BytesIO", "StringIO"))  # that what is called may write to
NUMBER = "number"
SURE = 8  # score from which a statement makes it grow, rather than one level down, or only names it
_FEW = ("append", "appendleft", "add", "put", "put_nowait", "push", "insert", "setdefault", "__setitem__")
_GETTERS = ("get", "setdefault", "__getitem__")
_ANY = None  # of a path: a key that the text does not tell
_MAKERS = {"float": "float", "int": "int", "str": "str", "len": "int", "bool": "bool", "list": "list", "dict": "dict",
           "tuple": "tuple", "set": "set"}  # fmt: skip
_LITERALS = {ast.List: "list", ast.ListComp: "list", ast.Dict: "dict", ast.DictComp: "dict", ast.Tuple: "tuple",
             ast.Set: "set", ast.SetComp: "set", ast.JoinedStr: "str", ast.Compare: "bool"}  # fmt: skip

Path = Tuple[Any, ...]


class Place(NamedTuple):
    """A statement of a file, in a function; score says how sure it is."""

    file: str
    line: int
    function: str
    score: int
    again: bool = False  # it is assigned what is made of itself
    last: int = 0  # line of the statement
    adds: str = ""  # type of what is added, where the text tells
    tested: bool = False  # on the line of the test under which it stands, so that a line that ran need not be it


class Sought(NamedTuple):
    """The container that is looked for."""

    name: str  # the variable, or the attribute
    attribute: bool
    inside: Optional[Tuple[int, str]] = None  # first line and name of the function whose local it is; else a global
    keys: Path = ()  # that lead from it to the container
    kind: str = ""
    klass: str = ""  # whose attribute it is
    new_keys: bool = False  # a subscript makes it grow, as of a defaultdict
    anywhere: bool = False  # a variable of that name, whosever it is
    methods: FrozenSet[str] = frozenset()  # variables that are its append or the like


def statements(file: str, sought: Sought) -> List[Place]:
    """Places where it may grow, those that are surest alone, in the order of the text; none if it is never named."""
    every = list(nodes(file))
    found = _statements(file, every, sought)
    if not found or found[0].score < SURE:
        for other in _other_names(every, sought):
            handed = _statements(file, every, other)
            found = handed if handed and (not found or handed[0].score > found[0].score) else found
    return found


def _statements(file: str, every: List[Node], sought: Sought) -> List[Place]:
    found: List[Tuple[Place, bool]] = []
    for at in every:
        score = _score(at.node, sought)
        if score and is_meant(at, sought, score):
            found.append((_place(file, at, score, sought), not of_another(at, sought)))
    best = max((place.score for place, _ in found), default=0)
    if best < SURE:  # one stands for all
        return [next(place for place, _ in found if place.score == best)] if found else []
    top = [one for one in found if one[0].score >= max(SURE, best // 4 * 4)]
    own = [one for one in top if one[1]]
    return sorted({place for place, _ in own or top}, key=lambda place: place.line)


def _place(file: str, at: Node, score: int, sought: Sought) -> Place:
    node = at.node
    score = score * 4 + 2 * bool(at.functions) + at.in_loop
    line = getattr(node, "lineno", 0)
    last = getattr(node, "end_lineno", None) or line
    tested = any(test.lineno == line for test in at.tests)
    return Place(file, line, at.qualified, score, _made_of_itself(node, sought), last, _added(node), tested)


def is_meant(at: Node, sought: Sought, score: int) -> bool:
    """Whether a name there is the variable that is sought, not another of its name."""
    if sought.attribute or sought.anywhere:
        return True
    names = [(first_line(function), function.name) for function in at.functions]
    if sought.inside is not None:
        if sought.inside not in names:
            return False
        within = at.functions[names.index(sought.inside) + 1 :]
        return not any(_binds(function, sought.name) for function in within)
    if score == 1 and at.functions:
        return False
    return not any(_binds(function, sought.name) for function in at.functions)


def grows(at: Node, sought: Sought) -> bool:
    """Whether a statement makes it grow."""
    return _score(at.node, sought) == 3 and is_meant(at, sought, 3)


def of_another(at: Node, sought: Sought) -> bool:
    """Whether it is an attribute of the objects of another class."""
    if not sought.klass or at.klass in ("", sought.klass):
        return False
    named = [node for node in ast.walk(at.node) if isinstance(node, ast.Attribute) and node.attr == sought.name]
    return any(isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") for node in named)


def _binds(function: Any, name: str) -> bool:
    """Whether a name is a function's own variable."""
    arguments = function.args
    every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    if any(argument.arg == name for argument in every):
        return True
    binds = False
    pending = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        binds = binds or (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
    return binds


def _other_names(every: List[Node], sought: Sought) -> Iterator[Sought]:
    """Parameters of functions that are handed it, and variables that are its append or the like."""
    functions = {at.node.name: at.node for at in every if isinstance(at.node, FUNCTIONS)}
    for at in every:
        value: Any = at.node.value if isinstance(at.node, ast.Assign) else None
        method = value.attr if isinstance(value, ast.Attribute) else ""
        if method in _methods(sought) and path_to(value.value, sought) == sought.keys:
            names = frozenset(target.id for target in at.node.targets if isinstance(target, ast.Name))
            yield sought._replace(methods=names, name="", anywhere=True)
        if isinstance(at.node, ast.Call) and _method(at.node) in functions:
            function = functions[_method(at.node)]
            parameters = [argument.arg for argument in function.args.posonlyargs + function.args.args]
            if isinstance(at.node.func, ast.Attribute) and parameters[:1] == ["self"]:
                del parameters[0]
            given = [*zip(parameters, at.node.args), *((k.arg, k.value) for k in at.node.keywords)]
            for parameter, value in given:
                path = path_to(value, sought)
                if path is not None and parameter and fits(path, sought.keys[: len(path)]):
                    inside, keys = (first_line(function), function.name), sought.keys[len(path) :]
                    yield sought._replace(name=parameter, attribute=False, inside=inside, keys=keys, klass="")


def called(file: str, name: str) -> List[Place]:
    """Where a file calls what makes a library's container of that name grow."""
    methods = CALLED.get(name, ())
    found = []
    for at in nodes(file) if methods else ():
        if isinstance(at.node, ast.Call) and _method(at.node) in methods:
            score = SURE + 2 * bool(at.functions) + at.in_loop
            last = getattr(at.node, "end_lineno", None) or at.node.lineno
            found.append(Place(file, at.node.lineno, at.qualified, score, last=last))
    return sorted(found, key=lambda place: place.line)


def defined(file: str, name: str) -> Optional[Place]:
    """Where a file defines a function: its first line, decorators included."""
    for at in nodes(file):
        if isinstance(at.node, FUNCTIONS) and at.node.name == name:
            qualified = (at.qualified + "." if at.qualified else "") + name
            return Place(file, first_line(at.node), qualified, 12)
    return None


def _method(call: Any) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _methods(sought: Sought) -> FrozenSet[str]:
    return _METHODS.get(sought.kind, GROWERS)


def _score(node: Any, sought: Sought) -> int:
    """3: makes it grow; 2: makes grow what is in it; 1: defines it; 0: none of these."""
    if _made_of_itself(node, sought):
        return 3
    grown = _grown(node, sought)
    if grown is not None:
        if fits(grown, sought.keys):
            return 3
        below = len(grown) > len(sought.keys) and fits(grown[: len(sought.keys)], sought.keys)
        if below:
            return 3 if sought.new_keys and len(grown) == len(sought.keys) + 1 else 2
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(_is(part, sought) for target in targets for part in _assigned(target)):
            return 1
    return 2 if sought.kind in _FILES and _is_handed(node, sought) else 0


def _is_handed(node: Any, sought: Sought) -> bool:
    """Whether it is an argument of a call."""
    given = [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []
    return any(_leads(argument, sought) for argument in given)


def _grown(node: Any, sought: Sought) -> Optional[Path]:
    """Keys that lead from the variable to what a statement makes grow; None: it does that to nothing in it."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _methods(sought):
            return path_to(node.func.value, sought)
        if isinstance(node.func, ast.Name) and node.func.id in sought.methods:
            return sought.keys
        if _method(node) == "setattr" and node.args and sought.kind == "table of attributes":
            return path_to(node.args[0], sought)
    elif isinstance(node, ast.AugAssign):
        return path_to(node.target, sought)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for part in _assigned(target):
                path = path_to(part.value, sought) if isinstance(part, ast.Subscript) else None
                if path is not None:
                    return path
    return None


def path_to(node: Any, sought: Sought) -> Optional[Path]:
    """Keys by which an expression leads from the variable; None: it does not begin there."""
    keys: List[Any] = []
    for _ in range(6):
        if _is(node, sought):
            return tuple(reversed(keys))
        if isinstance(node, ast.Subscript):
            keys.append(_constant(node.slice))
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            keys.append(_constant(node.args[0]) if node.args and node.func.attr in _GETTERS else _ANY)
            node = node.func.value
        else:
            return None
    return None


def _constant(node: Any) -> Any:
    """The text or number that a key is; _ANY where that is not known."""
    node = getattr(node, "value", node) if type(node).__name__ == "Index" else node  # before Python 3.9
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if type(value) in (str, int) else _ANY


def fits(path: Path, keys: Path) -> bool:
    return len(path) == len(keys) and all(a == b or a is _ANY or b is _ANY for a, b in zip(path, keys))


def _assigned(target: Any) -> List[Any]:
    """What an assignment's target names, alone or in a tuple."""
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _made_of_itself(node: Any, sought: Sought) -> bool:
    """Whether node is `name = f(name)` or `name += …`, the same of an entry, or f(name=x.name) of an attribute."""
    if isinstance(node, ast.AugAssign):
        return _leads(node.target, sought)
    if isinstance(node, ast.Call) and sought.attribute:
        given = [keyword.value for keyword in node.keywords if keyword.arg == sought.name]
        return any(_leads(part, sought) for value in given for part in ast.walk(value) if part is not value)
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    paths = [path_to(part, sought) for target in targets for part in _assigned(target)]
    if not any(path is not None and fits(path, sought.keys[: len(path)]) for path in paths):
        return False  # neither it is assigned, nor what it is an entry of
    return any(_leads(part, sought) for part in ast.walk(node.value) if part is not node.value)


def _leads(node: Any, sought: Sought) -> bool:
    """Whether an expression is what is sought."""
    path = path_to(node, sought)
    return path is not None and fits(path, sought.keys)


def _is(node: Any, sought: Sought) -> bool:
    if sought.attribute:
        return isinstance(node, ast.Attribute) and node.attr == sought.name
    return isinstance(node, ast.Name) and node.id == sought.name


def _added(node: Any) -> str:
    """Type of the item that a statement adds, NUMBER for one of several; empty where the text does not tell."""
    value: Any = None
    if isinstance(node, ast.Call) and _method(node) in _FEW:
        at = 1 if _method(node) in ("insert", "setdefault", "__setitem__") else 0
        value = node.args[at] if len(node.args) > at else None
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        value = node.value
    if isinstance(value, ast.Constant):
        return type(value.value).__name__
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Name):
            return _MAKERS.get(value.func.id, "")
        return NUMBER if _method(value) == "item" and not value.args else ""
    return _LITERALS.get(type(value), "")
