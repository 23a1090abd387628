"""Where a number that was read goes, told from the source."""

from __future__ import annotations

import contextlib
import linecache
import sys
from typing import Any, List

import pytest

from hightide_agent.imagine.undecided import follow as following
from hightide_agent.imagine.undecided.follow import follow, followed
from hightide_agent.imagine.undecided.uses import Use

FOUND: List[Use] = []
FRAMES: List[Any] = []


class Number:
    """Read as a tensor is: by a method, or by what it is taken for."""

    def __init__(self, floating: bool = False) -> None:
        self.floating = floating

    def item(self) -> Any:
        use, frame = followed(sys._getframe(1), self.floating)
        FOUND.append(use)
        FRAMES.append(frame)
        return 1.0 if self.floating else 1

    def tolist(self) -> Any:
        FOUND.append(follow(sys._getframe(1), self.floating))
        return [1, 2]

    def __bool__(self) -> bool:
        FOUND.append(follow(sys._getframe(1), self.floating))
        return True

    __int__ = __index__ = item


def returned(x: Any) -> Any:
    return x.item()


def compared(x: Any) -> Any:
    return x.item() > 7


def indirect(x: Any) -> Any:
    y = returned(x) * 2
    return [0] * 10 if y > 100 else y


PROGRAMS = {
    "n = x.item(); print(n)": "",
    "n = x.item(); print(f'{n:3d} of', n / 2)": "",
    "total = 0; total += x.item(); log = print; print(total / 3)": "",
    "n = int(x); zeros(n, 3)": "size",
    "n = x.item() + 1; m = n * 2; k = max(m, 3); empty((k, 2))": "size",
    "for i in range(x.item()): pass": "range",
    "data = [1, 2, 3]; data[:x.item()]": "slice",
    "n = x.item(); data = [1, 2, 3]; data[n]": "slice",
    "if x.item() > 3: pass": "branch",
    "ok = x.item() > 3; print('yes' if ok else 'no')": "branch",
    "while x: break": "loop",
    "if x: pass": "branch",
    "if not x or x: pass": "branch",
    "sizes = x.tolist(); zeros(sum(sizes))": "size",
    "sizes = []; sizes.append(x.item()); zeros(sizes[0])": "size",
    "for s in x.tolist(): pass": "range",
    "n = returned(x); print(n)": "",
    "n = returned(x); zeros(n)": "size",
    "indirect(x)": "branch",
    "unknown(x.item())": "passed on",
    "held = zeros; held.n = x.item()": "kept",
    "_ = [a for a in (1, 2) if x]": "branch",
    "(n := x.item()); zeros(n)": "size",
    "import torch; torch.zeros((x, 3))": "size",
    "data = [1, 2, 3]; y = data[:x]": "slice",
    "match int(x):\n    case 1: pass": "branch",
    "import operator; y = operator.index(x)": "",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_whole_numbers(program: str, tmp_path: Any) -> None:
    skip_match(program)
    assert run(program, tmp_path, False).kind == PROGRAMS[program]


GATE = "class Gate:\n    %s\ngate = Gate()\ngate.score = x.item()\n"


@pytest.mark.parametrize(("program", "kind"), [
    ("losses = []; losses.append(x.item()); print(sum(losses))", ""), ("unknown(x.item())", ""),
    ("held = zeros; held.n = x.item()", ""), ("sizes = x.tolist()\nfor s in sizes: print(s)", ""),
    ("_ = [i for i, s in enumerate(x.tolist()) if s > 3]", "branch"), ("unknown(x.item() > 3)", "passed on"),
    ("def build(n): return zeros(int(n))\nbuild(x.item())", "size"), ("def show(n): print(n)\nshow(x.item())", ""),
    ("class Best:\n    def hold(s, v): s.v = v\n    def ask(s): return zeros(s.v)\nBest().hold(x.item())", "size"),
    ("import math; print(1 if math.isnan(x.item()) else 2)", ""), ("best = 3\nif x.item() < best: best = 1", "branch"),
    ("zeros(int(x.item() * 5))", "size"),
    ("match x.item():\n    case v if v > 4: pass", "branch"), ("match x.item():\n    case 4.0: pass", "passed on"),
    ("match x.item():\n    case v: print(v)", ""), ("for v in each(x):\n    if v > 2: pass", "branch"),
    ("if high(x.item(), 2): pass", "branch"), ("history = []\nnote(history, x)\nif history[-1] > 1: pass", "branch"),
    ("history = []\nnote(history, x)\nprint(history)", ""),
    ("meter = Meter()\nmeter.update(value=x.item(), n=2)\nif meter.mean > 1: pass", "branch"),
    ("meter = Meter()\nmeter.update(value=x.item(), n=2)\nprint(meter.mean)", ""),
    ("plateau = Plateau()\nplateau(x.item())\nif plateau.stopped: pass", "branch"),
    ("def put(): STATE['loss'] = x.item()\nput()\ndef look(): return zeros(int(STATE['loss']))", "size"),
    ("class Kept: total = 0\nkept = Kept()\nkept.losses = []\nkept.losses.append(x.item())\n"
     "def look(): return zeros(int(kept.losses[0]))", "size"),
    (GATE % "def opens(s): return s.score > 2" + "if gate.opens(): pass", "branch"),
    (GATE % "def opens(s): return s.score * 2" + "if gate.opens() > 3: pass", "branch"),
    (GATE % "opens = property(lambda s: s.score > 2)" + "if gate.score > 2: pass", "branch"),
    (GATE % "@property\n    def opens(s): return s.score > 2" + "if gate.opens: pass", "branch"),
    (GATE % "def opens(s): return s.score > 2" + "print(gate.opens())", ""),
    (GATE % "def get(s): return s.score" + "if {}.get(1): pass", ""),
    ("class Kept: total = 0\nclass Sum:\n    def total(s): return 3\nKept.total = x.item()\n"
     "if Sum().total() > 2: pass", ""),
])  # fmt: skip
def test_floating_numbers(program: str, kind: str, tmp_path: Any) -> None:
    skip_match(program)
    assert run(program, tmp_path, True).kind == kind


@pytest.mark.parametrize(("program", "usual", "other"), [
    ("if x.item() > 5: pass", 0.0, 6.0), ("low = -3\nif x.item() * 2 < low: pass", 0.0, -3.0),
    ("v = x.item()\nbad = abs(v) > 100\nif bad: pass", 0.0, 101.0), ("if not compared(x): pass", 0.0, 8.0),
    ("best = 9.0\nfor i in range(2):\n    v = x.item()\n    if v < best: best = v", 9.0, 0.0),
    ("if x.item() < len('  '): pass", 3.0, None),
    ("loss, s = 9.0, 0\nwhile loss > 2 and s < 3:\n    s += 1\n    loss = x.item()", 0.0, 3.0),
    ("loss = 9.0\nfor i in range(2):\n    if loss > 5: pass\n    loss = x.item()", 0.0, None),
])  # fmt: skip
def test_a_number_is_found_for_the_other_branch(program: str, usual: float, other: Any, tmp_path: Any) -> None:
    test = run(program, tmp_path, True).test
    assert test is not None
    assert test.truth(usual, FRAMES[0]) is not True
    assert test.other(FRAMES[0], usual, 1) == other


HOOKS = (
    "import torch\nw = torch.ones(3, requires_grad=True)\n"
    "with torch.autograd.graph.saved_tensors_hooks(pack, unpack):\n    "
)


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize(("line", "kind"), [
    ("y = torch.exp(w)", ""), ("y = w * w", ""), ("y = w.exp()", ""), ("y = (w + 1).exp().sum()", ""),
    ("y = torch.nn.ReLU()(w)", ""), ("y = held(w)", "branch"),
])  # fmt: skip
def test_what_a_hook_of_autograd_gives_back_is_not_what_its_operator_gives(
    line: str, kind: str, floating: bool, tmp_path: Any
) -> None:
    if sys.version_info < (3, 11) and not kind:
        pytest.skip("this Python does not know which expression of a line runs")
    functions = "def pack(t): return ('cpu', x.item())\ndef unpack(p): return w\ndef held(w): return (w, x.item())\n"
    program = functions + HOOKS + line + "\nif y is not None: pass"
    assert run(program, tmp_path, floating).kind == kind


def test_checks_that_only_raise_pass(tmp_path: Any) -> None:
    assert run("if not x:\n    raise ValueError('no')", tmp_path, False).passes is True
    assert run("y = 0\nif x and y:\n    raise ValueError('no')", tmp_path, False).passes is None
    assert run("assert x, 'no'", tmp_path, False).passes is True
    assert run("y = 1\nassert x and y, 'no'", tmp_path, False).passes is True
    assert run("y = 1\nif not x or not y:\n    raise ValueError('no')", tmp_path, False).passes is True
    assert run("y = 1\nif not (x and y):\n    raise ValueError('no')", tmp_path, False).passes is True
    assert run("if x:\n    print('a branch')", tmp_path, False).passes is None
    use = run("v = x.item()\nif v <= 0.5:\n    raise ValueError(v)", tmp_path, True)
    assert use.passes is False
    assert use.test is not None
    assert use.test.find(False, FRAMES[0]) == 1.0
    assert run("v = x.item()\nif v > 2:\n    raise ValueError(v)\nzeros(int(v))", tmp_path, True).kind == "size"


MEAN = "def average(losses): return torch.tensor(losses).mean().item()\nimport torch\nl = []\nl.append(x.item())\n"


@pytest.mark.parametrize(("program", "number"), [
    ("v = x.item()\nassert 1 < v < 2", 1.5),
    (MEAN + "m = average(l)\nassert 1 < m < 2, m", 1.5),
    (MEAN + "assert 10 <= average(l) < 10.5", 10.0),
    (MEAN + "if not 3 < torch.tensor(l).mean().item():\n    raise ValueError", 4.0),
    ("import numpy as np\nl = []\nl.append(x.item())\nassert -2 < np.mean(l) < -1", -1.5),
    ("assert hash(x.item()) % 7 == 3", None), ("assert 2 < x.item() < 1", None),
])  # fmt: skip
def test_a_check_passes_with_a_number_that_is_found(program: str, number: Any, tmp_path: Any) -> None:
    with contextlib.suppress(AssertionError, ValueError):  # the number is 1 here
        run(program, tmp_path, True)
    use = FOUND[0]
    if use.kind == "":  # hash tells: it is not followed
        assert number is None
        return
    assert use.passes is not None and use.test is not None
    assert use.test.find(bool(use.passes), FRAMES[0]) == number


def test_what_is_caught_is_no_check(tmp_path: Any) -> None:
    raising = "if not x:\n        raise ValueError('no')"
    assert not run(f"try:\n    {raising}\nexcept KeyError:\n    pass", tmp_path, False).caught
    assert not run(f"try:\n    {raising}\nexcept Exception:\n    print()\n    raise", tmp_path, False).caught
    use = run(f"try:\n    {raising}\nexcept (KeyError, ValueError):\n    pass", tmp_path, False)
    assert use.passes is True
    assert use.caught
    outer = "def inner():\n    assert x, 'no'\ntry:\n    inner()\nexcept Exception:\n    pass"
    assert run(outer, tmp_path, False).caught
    assert run("import torch\nif not x:\n    torch._assert(False, 'no')", tmp_path, False).passes is True
    assert run("if not x:\n    print(False)", tmp_path, False).passes is None


def test_without_source_whole_numbers_decide() -> None:
    FOUND.clear()
    exec(compile("def f(x):\n    return str(x.item())\nf(x)", "<nowhere>", "exec"), {"x": Number()})
    assert FOUND[0].kind == "passed on"


def skip_match(program: str) -> None:
    if program.startswith("match") and sys.version_info < (3, 10):
        pytest.skip("this Python has no match statement")


def high(value: Any, limit: Any) -> Any:
    return value > limit


def note(history: Any, x: Any) -> None:
    history.append(x.item())


def each(x: Any) -> Any:
    yield x.item()


class Meter:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def update(self, value: float, n: int = 1) -> None:
        self.total += value * n
        self.count += n

    @property
    def mean(self) -> float:
        return self.total / self.count


class Plateau:
    best, stopped = 9e9, False

    def __call__(self, value: float) -> None:
        if value > self.best:
            self.stopped = True
        self.best = min(self.best, value)


STATE: Any = {}


def run(program: str, folder: Any, floating: bool) -> Use:
    path = folder / ("program%d.py" % len(list(folder.iterdir())))
    body = "\n".join("    " + line for line in program.split("\n"))
    path.write_text("def main(x):\n%s\nmain(x)\n" % body)
    FOUND.clear()
    FRAMES.clear()
    given = {"x": Number(floating), "zeros": lambda *a: None, "empty": lambda *a: None, "unknown": lambda *a: None,
             "returned": returned, "indirect": indirect, "compared": compared, "high": high,
             "note": note, "each": each, "Meter": Meter, "Plateau": Plateau, "STATE": STATE}  # fmt: skip
    exec(compile(path.read_text(), str(path), "exec"), given)
    return FOUND[0]


def test_a_place_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file as long as the largest of vLLM's: a look at it takes milliseconds, and an engine reads at each step."""
    path, looks, look = "long_runner.py", [], following._look
    lines = ["def other_%d(a):\n    return a\n" % number for number in range(1258)]
    text = "".join([*lines, "def step(x):\n    n = x.item()\n    held = [0] * n\n"])
    assert len(text.splitlines()) == 2519
    monkeypatch.setitem(linecache.cache, path, (len(text), None, text.splitlines(True), path))

    def counted(frame: Any, *more: Any) -> Use:
        looks.append(frame.f_lineno)
        return look(frame, *more)

    monkeypatch.setattr(following, "_look", counted)
    names: dict[str, Any] = {}
    exec(compile(text, path, "exec"), names)
    FOUND.clear()
    for _ in range(1000):
        names["step"](Number())
    assert looks == [2518], looks
    assert len(FOUND) == 1000 and len(set(FOUND)) == 1, set(FOUND)
