"""What a number decides in one function, read from the function's source.

    the expression that reads (by its instruction) ─▶ what that stands in ─▶ a name ─▶ its uses

A size, a range, a slice or a branch is a use that decides. A number that is only summed up, compared in no branch,
printed or logged decides nothing. Floating-point numbers are followed into functions and methods of the program's own
files, by the names of parameters, attributes and globals. Where they are compared, the result is followed as a whole
number.
"""

from __future__ import annotations

import ast
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ...places import is_library
from ..source import FUNCTIONS, function_of, is_parameter, local, parts, text_of, tree_of
from .checks import exception, passes
from .comparison import Test, place
from .scopes import callee, own_files
from .words import ABOUT, ARRAYS, FINITE, GIVES, NUMBERS, READS, SIZES, STORES, TELLS

COMMON = frozenset(("get", "pop", "forward", "__call__", "__getattr__", "__getitem__", *GIVES, *STORES))
"""Names of functions that say nothing of which one a call runs."""
CALLEES = 3  # functions below each other that a number is given to
TESTS = (ast.If, ast.While, ast.Assert)
MATCHES = (ast.Match, ast.match_case) if sys.version_info >= (3, 10) else ()
DECIDING = (*TESTS, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""What has a test of its own."""


class Use(NamedTuple):
    """What a number decides."""

    kind: str  # branch, loop, size, range, slice, passed on, kept; "": nothing
    line: int  # of the use, in the file of the function that has it
    passes: Optional[bool] = None  # of a check that only raises: the truth value with which it does not
    test: Optional[Test] = None  # the comparison of a floating-point number that decides
    raises: str = ""  # the exception of that check
    caught: bool = False  # and the program goes on after it
    stored: str = ""  # the parameter that it is put into, as a list


NOTHING = Use("", 0)


class Function:
    """The uses of a number in one function."""

    def __init__(self, function: Any, floating: bool, tree: Any = None, depth: int = 0, scopes: Any = ()) -> None:
        self.function = function
        self.scopes = scopes  # what its names hold, as far as that is known
        self.floating = floating
        self.tree = tree  # of the program's own file, for floating-point numbers that go elsewhere in it
        self.depth = depth
        self.parents: Dict[Any, Any] = {}
        for node in ast.walk(function):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self.names: Dict[str, bool] = {}  # that hold the number, and whether it is a floating-point one there
        self.tests: Dict[str, Test] = {}
        self.pending: List[str] = []
        self.numbers: Set[Any] = set()
        self.defined: Dict[str, Any] = {}
        self.kept: Set[str] = set()  # attributes
        self.shared: Set[str] = set()  # globals
        self.stored = ""  # the parameter that it was put into

    def uses(self, position: Tuple[int, int, int, int], result: bool = False, stored: str = "") -> Use:
        """What the expression at a position decides, itself or by a name. `result`: it is a call that gave it, or put
        it into what it was given for the parameter `stored`."""
        begun = self._at(position)
        if begun is None:
            return NOTHING if self.floating else Use("passed on", position[0])
        found: List[Use] = []
        self.numbers.update(begun)
        for node in begun:
            if stored:
                self._given_back(node, stored)
            if not result and (within := self._within(node)) is not None:
                found.extend(within)
                continue
            found.extend(
                self._part(node)
                or ([_tested(node)] if isinstance(node, DECIDING) else self._climb(node, self.floating))
            )
        found.extend(self._by_names())
        deciding = [use for use in found if use.kind not in ("", "returned")]
        for use in deciding:  # a check of a comparison leaves open what else the number decides
            if use.passes is None or use.test is None:
                return use
        back = [use for use in found if use.kind == "returned"]
        if self.stored and not deciding:
            return (back or [Use("returned", 0)])[0]._replace(stored=self.stored)
        return (deciding or back or [NOTHING])[0]

    def _given_back(self, call: Any, parameter: str) -> None:
        """A call has put the number into what it was given for a parameter."""
        runs = callee(call.func, self.scopes) if isinstance(call, ast.Call) else None
        if runs is None or runs[0] is None:
            return
        names = list(runs[0].__code__.co_varnames[runs[1] : runs[0].__code__.co_argcount])
        argument = next((k.value for k in call.keywords if k.arg == parameter), None)
        if parameter in names[: len(call.args)]:
            argument = call.args[names.index(parameter)]
        if isinstance(argument, (ast.Name, ast.Attribute)):
            self._track(text_of(argument), self.floating)
            self._keep(argument)

    def of_name(self, name: str) -> List[Use]:
        """What the number decides that this name, or attribute, holds from the beginning."""
        self.names[name], self.defined[name] = self.floating, ((0, 0), None)
        self.pending.append(name)
        return list(self._by_names())

    def _by_names(self) -> Iterator[Use]:
        while self.pending:
            name = self.pending.pop()
            for node in list(self._loads(name)):
                yield from self._climb(node, self.names[name], self.tests.get(name))
        if self.tree is None or self.depth >= CALLEES or not (self.kept or self.shared):
            return
        for tree in self._trees() if self.kept else [self.tree]:
            shared = self.shared if tree is self.tree else set()
            nodes = list(ast.walk(tree))
            if not any(getattr(n, "attr", "") in self.kept or getattr(n, "id", "") in shared for n in nodes):
                continue
            for function in (tree, *(node for node in nodes if isinstance(node, FUNCTIONS))):
                if function is self.function:
                    continue
                for use in Function(function, True, tree, CALLEES).elsewhere(self.kept, shared):
                    if use.kind != "returned":
                        yield use
                    elif getattr(function, "name", "get") not in COMMON:
                        yield from self._called(function.name, use.test)

    def _called(self, name: str, test: Optional[Test]) -> Iterator[Use]:
        """What a kept number decides where a function that returns it, or a comparison of it, is called by this name;
        also where it is a property. What that one returns in turn is not followed."""
        for tree in self._trees():
            for function in (tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))):
                yield from Function(function, True, tree, CALLEES).of_calls(name, test)

    def of_calls(self, name: str, test: Optional[Test]) -> Iterator[Use]:
        """What the result of a function of this name decides in this one."""
        for node in list(parts(self.function)):
            called = isinstance(node, ast.Call) and _last(node.func) == name
            read = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
            parent = self.parents.get(node)
            if called or (read and not (isinstance(parent, ast.Call) and parent.func is node)):
                self.numbers.add(node)
                yield from (use for use in self._climb(node, test is None, test) if use.kind != "returned")
        yield from (use for use in self._by_names() if use.kind != "returned")

    def elsewhere(self, kept: Set[str], shared: Set[str]) -> Iterator[Use]:
        """What a number decides here that another function keeps as an attribute, or in a global."""
        for node in list(parts(self.function)):
            if not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            if isinstance(node, ast.Attribute) and node.attr in kept:
                parent = self.parents.get(node)
                if isinstance(parent, ast.Call) and parent.func is node:
                    continue  # a method of that name
            elif not (isinstance(node, ast.Name) and node.id in shared and not local(node.id, self.function)):
                continue
            self.numbers.add(node)
            yield from self._climb(node, True)
        yield from self._by_names()

    def _trees(self) -> Iterator[Any]:
        """Of the program's own files, this one first."""
        yield self.tree
        for path in own_files():
            tree = tree_of(path)
            if tree is not None and tree is not self.tree:
                yield tree

    def _keep(self, place: Any, within: bool = True) -> None:
        """A number was put into what this expression is, where other functions may find it; else it is that itself."""
        while isinstance(place, ast.Subscript):
            place = place.value
        if isinstance(place, ast.Attribute):
            self.kept.add(place.attr)
        elif isinstance(place, ast.Name) and not local(place.id, self.function):
            self.shared.add(place.id)
        elif isinstance(place, ast.Name) and within and is_parameter(place.id, self.function):
            self.stored = place.id

    def _track(self, name: str, floating: bool, test: Optional[Test] = None) -> None:
        if self.names.get(name, True) and self.names.get(name) is not floating:
            self.names[name] = floating
            if test is not None:
                self.tests[name] = test
            self.pending.append(name)

    def _within(self, node: Any) -> Optional[List[Use]]:
        """The use of a number by what reads it itself: `torch.empty(n)`, `x[:n]`. None: it gives the number."""
        if isinstance(node, ast.Call) and _last(node.func) in SIZES:
            return [Use("size", node.lineno)]
        if isinstance(node, ast.Call) and not self.floating and _last(node.func) not in GIVES:
            return [Use("passed on", node.lineno)]
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(part, ast.Slice) for part in parts):
                return [Use("slice", node.lineno)]
        return None

    def _at(self, position: Tuple[int, int, int, int]) -> Optional[List[Any]]:
        first, begin, last, end = position
        on_line = []
        for node in ast.walk(self.function):
            if isinstance(node, (ast.For, ast.AsyncFor)) and (node.lineno, node.col_offset) == (first, begin):
                return [node.iter]  # which gives one after the other
            if not isinstance(node, (ast.expr, *TESTS)) or isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == (first, begin, last, end):
                return [node]
            if node.lineno <= first <= (node.end_lineno or node.lineno) and (_reads(node) or _on(node, first)):
                on_line.append(node)
        return on_line or None

    def _loads(self, name: str) -> Iterator[Any]:
        for node in ast.walk(self.function):
            if not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            named = isinstance(node, ast.Name) and node.id == name
            if named or (isinstance(node, ast.Attribute) and text_of(node) == name):
                yield node

    def _climb(self, node: Any, floating: bool, test: Optional[Test] = None) -> Iterator[Use]:
        """From an expression that has the number outwards, to what is done with it."""
        truth: Optional[bool] = True  # that the test has where the number is true; None: not known
        alone: Optional[bool] = None  # of a part of an `and` or `or`: the truth of the test that settles each part
        while True:
            parent = self.parents.get(node)
            if parent is None:
                return
            if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)) and node is parent.test:
                passing = passes(parent, truth, alone)
                kind = "loop" if isinstance(parent, ast.While) else "branch"
                yield Use(kind, parent.lineno, passing, test, "" if passing is None else exception(parent))
                return
            if isinstance(parent, (ast.comprehension, ast.For, ast.AsyncFor)):
                yield from self._walked(parent, node, floating, test)
                if not (floating and isinstance(parent, ast.comprehension) and node is parent.iter):
                    return
            elif isinstance(parent, MATCHES):
                yield from self._matched(parent, node, floating, test)
                return
            elif isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
                truth = None if truth is None else not truth
                alone = None if alone is None else not alone
            elif isinstance(parent, ast.BoolOp):
                settles = isinstance(parent.op, ast.And)
                truth = truth if alone in (None, settles) else None
                alone = settles
            elif isinstance(parent, (ast.Compare, ast.BinOp)):
                if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod) and _text(parent.left):
                    return
                if floating and isinstance(parent, ast.Compare):
                    test, floating, truth, alone = self._test(parent), False, True, None
                else:
                    truth = None
            elif isinstance(parent, ast.Call):
                verdict = self._call(parent, node, floating, test)
                if verdict is not None and not (verdict and verdict[0].kind == "returned"):
                    yield from verdict
                    return
                if verdict is not None and verdict[0].test is not None:  # what comes back was compared there
                    test, floating, truth, alone = verdict[0].test, False, None, None
            elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
                yield from self._assigned(parent, floating, test)
                if not isinstance(parent, ast.NamedExpr):
                    return
            else:
                ends = self._ends(parent, node, floating, test)
                if ends is not None:
                    yield from ends
                    return
            node = parent

    def _ends(self, parent: Any, node: Any, floating: bool, test: Optional[Test]) -> Optional[List[Use]]:
        """The use where the way outwards ends by the form of what the number stands in; None: it goes on."""
        if isinstance(parent, ast.Slice) or (isinstance(parent, ast.Subscript) and node is parent.slice):
            return [Use("slice", node.lineno, None, test)]
        gives = isinstance(parent, (ast.Yield, ast.YieldFrom))
        if isinstance(parent, (ast.Return, ast.Lambda)) or (floating and gives):
            return [Use("returned", 0, None, test)]
        if gives:
            return [Use("passed on", node.lineno, None, test)]
        shown = isinstance(parent, (ast.FormattedValue, ast.JoinedStr, ast.stmt))
        return [] if shown or (isinstance(parent, ast.Attribute) and parent.attr in ABOUT) else None

    def _walked(self, loop: Any, node: Any, floating: bool, test: Optional[Test]) -> Iterator[Use]:
        """Of what a loop walks over, or what a comprehension tests. Of a list of floating-point numbers the length is
        known."""
        if node is not loop.iter:
            if isinstance(loop, ast.comprehension):
                yield Use("branch", node.lineno, None, test)
        elif floating:
            self._items(loop.target)
        else:
            yield Use("range", node.lineno if isinstance(loop, ast.comprehension) else loop.lineno)

    def _matched(self, match: Any, node: Any, floating: bool, test: Optional[Test]) -> Iterator[Use]:
        """Of the subject of a `match`, or of a guard. A name that takes a floating-point number is followed on."""
        if not floating or node is not getattr(match, "subject", match):
            yield Use("branch", node.lineno, None, test)
            return
        pattern: Any
        for pattern in (part for case in match.cases for part in ast.walk(case.pattern)):
            if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name:
                self.defined[pattern.name] = place(pattern), None
                self._track(pattern.name, True)
            elif isinstance(pattern, ast.MatchValue):
                yield Use("passed on", node.lineno)  # which of them it is cannot be worked out

    def _part(self, node: Any) -> List[Use]:
        """Of a jump that stands for a whole `and` or `or`: the use that each of its parts has, where that is one."""
        whole = _bare(node if isinstance(node, ast.BoolOp) else getattr(node, "test", None))
        if not isinstance(whole, ast.BoolOp):
            return []
        uses = {use[:3]: use for part in whole.values for use in self._climb(_bare(part), self.floating)}
        return list(uses.values()) if len(uses) == 1 else []

    def _items(self, target: Any) -> None:
        """Each item of a list of floating-point numbers is one."""
        for part in ast.walk(target):
            if isinstance(part, ast.Name):
                self.defined[part.id] = place(part), None
                self._track(part.id, True)

    def _test(self, compare: Any) -> Test:
        last = self._until(compare)
        before = {name for name, (line, _) in self.defined.items() if line <= last}
        parts = [n for n in ast.walk(compare) if isinstance(n, (ast.Name, ast.Attribute))]
        against = {text_of(n) for n in parts} - before
        changes = False
        for node in ast.walk(self.function):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                changes = changes or (text_of(node) in against and self._below(node))
        return Test(compare, self.numbers, self.defined, changes, bool(self.depth), last)

    def _until(self, compare: Any) -> Tuple[int, int]:
        """Up to where names are set that a comparison reads: what a `while` tests is set in its body."""
        node = compare
        while isinstance(node, ast.expr):
            within, node = node, self.parents.get(node)
        loops = isinstance(node, ast.While) and within is node.test
        return ((node.end_lineno or node.lineno) + 1, 0) if loops else place(compare)

    def _below(self, node: Any) -> bool:
        """Whether a name is set in a loop or a method, so that it holds something else the next time."""
        while node is not None:
            if isinstance(node, (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)):
                return True
            node = self.parents.get(node)
        return False

    def _given(self, call: Any, node: Any) -> List[Use]:
        """What a floating-point number decides in a function of the program's own, or that it comes back."""
        found: List[Use] = []
        for function, tree, skipped, scopes in self._functions(call.func):
            arguments = function.args
            names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][skipped:]
            keyword = next((k.arg for k in call.keywords if k is node or k.value is node), None)
            if keyword is None and node in call.args:
                at = call.args.index(node)
                keyword = names[at] if at < len(names) else arguments.vararg.arg if arguments.vararg else None
            if keyword is not None:
                found.extend(Function(function, True, tree, self.depth + 1, scopes).of_name(keyword))
        deciding = [use for use in found if use.kind not in ("", "returned")]
        if found and not deciding:  # it comes back, as it is or nearly so
            self.numbers.add(call)
        return deciding or sorted((u for u in found if u.kind == "returned"), key=lambda u: u.test is None)

    def _functions(self, called: Any) -> Iterator[Tuple[Any, Any, int, Any]]:
        """The functions of the program's own that a call may run: (function, its file, parameters that are not given,
        scopes). Where it cannot be told which, those of that name."""
        if self.tree is None or self.depth >= CALLEES:
            return
        runs = callee(called, self.scopes)
        if runs is not None:
            runner: Any = runs[0]
            code: Any = getattr(runner, "__code__", None)
            function = None if code is None or is_library(code.co_filename) else function_of(code)
            if function is not None:
                yield function, tree_of(code.co_filename), runs[1], (runner.__globals__,)
            return
        for tree in list(self._trees()):
            methods = {each for n in ast.walk(tree) if isinstance(n, ast.ClassDef) for each in n.body}
            for function in ast.walk(tree):
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name == _last(called):
                    yield function, tree, int(isinstance(called, ast.Attribute) and function in methods), ()

    def _call(self, call: Any, node: Any, floating: bool, test: Optional[Test]) -> Optional[List[Use]]:
        """What a call makes of its argument; None: a number again, to be followed on."""
        if node is call.func:
            return None
        name = _last(call.func)
        if name in TELLS:
            return []
        if floating and name in FINITE:
            return []  # what was computed is taken to be finite
        if name == "range":
            return [Use("range", call.lineno, None, test)]
        if name in SIZES:
            return [Use("size", call.lineno, None, test)]
        if name in NUMBERS or (floating and text_of(call.func).split(".")[0] in ARRAYS):
            return None
        if name in STORES and isinstance(call.func, ast.Attribute):
            self._track(text_of(call.func.value), floating, test)
            self.defined.setdefault(text_of(call.func.value), (place(call), None))
            self._keep(call.func.value)
            given = self._given(call, node) if floating else []
            return [use for use in given if use.kind != "returned"]
        return self._given(call, node) if floating else [Use("passed on", call.lineno, None, test)]

    def _assigned(self, statement: Any, floating: bool, test: Optional[Test]) -> Iterator[Use]:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    if isinstance(statement, ast.Assign) and part is target and statement.value not in self.numbers:
                        self.defined[part.id] = place(part), statement.value
                    elif part is target and not isinstance(statement, ast.AugAssign):
                        self.defined[part.id] = place(part), None
                    self._track(part.id, floating, test)
                    self._keep(part, False)
                elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                    self._track(text_of(part), floating, test)
                    if not floating:
                        yield Use("kept", statement.lineno, None, test)
                    self.kept.add(part.attr)
                elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
                    self._track(text_of(part.value), floating, test)
                    self._keep(part.value)


def _bare(test: Any) -> Any:
    """What a `not` is about."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return test


def _tested(node: Any) -> Use:
    """Of a jump, which in older versions of Python stands for its whole statement: the use of what it tests."""
    test, truth = getattr(node, "test", None), True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, truth = test.operand, not truth
    passing = None if isinstance(test, ast.BoolOp) else passes(node, truth)
    kind = "loop" if isinstance(node, ast.While) else "branch"
    return Use(kind, node.lineno, passing, None, "" if passing is None else exception(node))


def _reads(node: Any) -> bool:
    """Whether an expression is one that reads, as far as its form tells: where only the line is known."""
    return isinstance(node, ast.Call) and _last(node.func) in READS


def _on(node: Any, line: int) -> bool:
    return isinstance(node, TESTS) and node.test.lineno <= line <= (node.test.end_lineno or line)


def _last(function: Any) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _text(node: Any) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)
