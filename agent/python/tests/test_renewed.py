"""What grows by being replaced: a name leads to another object each time, which is made of the one before."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from hightide_agent import holders
from hightide_agent.holders import Holders


class Agent:
    """Keeps what a real one sends."""

    channel = None

    def __init__(self) -> None:
        self.facts: Dict[str, Any] = {}
        self.on_renew: List[Callable[[], None]] = []
        self.told: List[Dict[str, Any]] = []

    def fact(self, key: str, value: Any) -> None:
        self.facts[key] = value

    def record(self, record: Dict[str, Any]) -> None:
        if record["type"] == "holder":
            self.told.append(record)


@pytest.fixture
def scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Agent]:
    """scanned(text) takes the turns of a program, turn(x), and scans now and then, as long as each scan needs."""
    monkeypatch.setattr(holders, "BUDGET_NS", 60_000_000_000)

    def run(text: str) -> Agent:
        (tmp_path / "renews.py").write_text(textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location("renews", tmp_path / "renews.py")
        assert spec is not None and spec.loader is not None
        module = sys.modules["renews"] = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "renews", module)
        spec.loader.exec_module(module)
        agent = Agent()
        scans = Holders(agent)  # type: ignore[arg-type]
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = lambda *_: None  # type: ignore[assignment]
            for at in range(1, 80):
                module.turn(bytearray(4096))
                if at in (6, 10, 17, 28, 46, 75):
                    scans.scan(at, [], 1.0)
        return agent

    return run


GROWN = {
    "a list joined": ("history", "list", """
        history = []
        def turn(x):
            global history
            history = history + [x]  # HERE
        """),
    "a list written out": ("history", "list", """
        history = []
        def turn(x):
            global history
            history = [*history, x]  # HERE
        """),
    "a dict merged": ("state", "dict", """
        state = {}
        def turn(x):
            global state
            state = {**state, len(state): x}  # HERE
        """),
    "a tuple": ("history", "tuple", """
        history = ()
        def turn(x):
            global history
            history += (x,)  # HERE
        """),
    "a field of what is frozen": ("State.history", "tuple", """
        import dataclasses
        @dataclasses.dataclass(frozen=True)
        class State:
            history: tuple = ()
        state = State()
        def turn(x):
            global state
            state = dataclasses.replace(state, history=(*state.history, x))  # HERE
        """),
    "an entry of what a store replaces": ("Store.state['items']", "list", """
        class Store:
            def __init__(self):
                self.state = {"items": []}
            def dispatch(self, x):
                self.state = {**self.state, "items": [*self.state["items"], x]}  # HERE
        store = Store()
        def turn(x):
            store.dispatch(x)
        """),
    "scopes in scopes": ("scope", "ChainMap", """
        from collections import ChainMap
        scope = ChainMap()
        def turn(x):
            global scope
            scope = scope.new_child({"x": x})  # HERE
        """),
}  # fmt: skip


@pytest.mark.parametrize("case", GROWN)
def test_what_is_made_of_itself_is_told_with_its_line(scanned: Callable[[str], Agent], case: str) -> None:
    name, kind, text = GROWN[case]
    agent = scanned(text)
    assert {holder["name"] for holder in agent.told} == {name}
    last = agent.told[-1]
    assert last["kind"] == kind and last["items"] in (75, 76)
    assert last["line"] == text.partition("# HERE")[0].count("\n") + 1
    assert last["items_per_step"] == pytest.approx(1.0)
    # The newest scope is the first, and the first scope of all has nothing.
    assert last["tensor_bytes"] / last["items"] == pytest.approx(4096, rel=0.3 if kind == "ChainMap" else 0.1)
    assert "replaced" not in agent.facts


def test_where_the_source_does_not_say_so_it_is_told_as_unsure(scanned: Callable[[str], Agent]) -> None:
    """What is longer each time may be so for any reason."""
    agent = scanned(
        """
        history = []
        def turn(x):
            global history
            longer = history + [x]
            history = longer
        """
    )
    assert agent.told == []
    assert agent.facts["replaced"] == "list `history`"


def test_what_is_as_long_each_time_does_not_grow(scanned: Callable[[str], Agent]) -> None:
    agent = scanned(
        """
        recent, state, count = (), {}, 0
        def turn(x):
            global recent, state, count
            recent, count = (*recent, x)[-4:], count + 1
            state = {**state, count % 4: x}
        """
    )
    assert agent.told == []
    assert "replaced" not in agent.facts


def test_callbacks_of_an_exit_stack_are_measured(scanned: Callable[[str], Agent]) -> None:
    """A method of a built-in object keeps the object."""
    agent = scanned(
        """
        import contextlib
        stack = contextlib.ExitStack()
        def turn(x):
            stack.callback(x.clear)  # HERE
        """
    )
    last = agent.told[-1]
    assert (last["name"], last["kind"], last["line"]) == ("stack", "exit stack", 5)
    assert last["tensor_bytes"] / last["items"] == pytest.approx(4096, rel=0.2)


def test_what_is_used_as_a_table_is_seen(scanned: Callable[[str], Agent]) -> None:
    """Attributes and variables under ever new names, and texts that were warned of."""
    agent = scanned(
        """
        import warnings
        class Config: pass
        cfg = Config()
        for name in range(100): setattr(cfg, f"first_{name}", None)
        def turn(x):
            count = len(vars(cfg))
            setattr(cfg, f"value_{count}", x)  # attributes
            globals()[f"value_{count}"] = bytearray(4096)
            warnings.warn(f"{count} " + 4000 * "x")  # warnings
        globals().update((f"first_{n}", None) for n in range(100))
        """
    )
    last = {
        holder["name"]: holder for holder in agent.told if holder["name"] in ("cfg", "renews", "__warningregistry__")
    }
    assert {name: (holder["kind"], holder.get("line")) for name, holder in last.items()} == {
        "cfg": ("table of attributes", 8),
        "renews": ("table of variables", None),
        "__warningregistry__": ("registry of warnings", 10),
    }
    for name in ("cfg", "renews"):
        assert last[name]["tensor_bytes"] / last[name]["items"] == pytest.approx(4096, rel=0.2)


def test_what_a_library_keeps_is_put_down_to_who_calls_it(scanned: Callable[[str], Agent]) -> None:
    """The library's own source has such calls too, which did not run."""
    agent = scanned(
        """
        import logging
        class Kept(logging.Handler):
            def __init__(self, x):
                super().__init__()
                self.buffer = x
        def turn(x):
            logging.getLogger("of a test").addHandler(Kept(x))  # HERE
        """
    )
    last = [holder for holder in agent.told if holder["name"] == "Logger.handlers"][-1]
    assert (Path(last["file"]).name, last["line"]) == ("renews.py", 8)


def test_lines_of_files_that_the_library_keeps(scanned: Callable[[str], Agent], tmp_path: Path) -> None:
    agent = scanned(
        f"""
        import linecache
        def turn(x):
            path = "{tmp_path}/made%d.txt" % len(linecache.cache)
            with open(path, "w") as file:
                file.write("of a file\\n" * 100)
            linecache.getline(path, 3)
        """
    )
    last = [holder for holder in agent.told if holder["name"] == "linecache.cache"][-1]
    assert (last["kind"], last["items_per_step"]) == ("table of source lines", pytest.approx(1))


def test_a_program_of_many_files_has_its_lines(
    scanned: Callable[[str], Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred modules were imported before the one whose call makes a library's list grow."""
    for number in range(200):
        file = tmp_path / ("part%d.py" % number)
        file.write_text("PART = %d\n" % number)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, file.stem, module)
        spec.loader.exec_module(module)
    test_what_a_library_keeps_is_put_down_to_who_calls_it(scanned)
