"""Looks for growing containers by the clock: the last one at the program's end, none while a library is imported."""

from __future__ import annotations

import builtins
import importlib
import sys
from pathlib import Path
from typing import Any, List

import pytest

from conftest import SOURCE  # noqa: F401  (puts the agent on the path)
from hightide_agent.watcher import _importing

SHORT = """
    import atexit, sys
    from time import monotonic_ns
    from hightide_agent import holders
    holders.UNEVEN = 1e9  # what is looked at is whether it is told, not how evenly a busy machine runs
    holders.SMALL_MINUTE = 0
    watcher = sys.modules["hightide_agent.start"].watcher
    kept = []
    def grow():
        kept.extend(bytearray(1 << 20) for _ in range(4))
    atexit.register({before})
    for _ in range(2):
        grow()
        watcher._scan(None, monotonic_ns())
    grow()
    atexit.register({after})
    """


def test_what_grew_in_a_run_that_was_seen_twice_is_told_at_its_end(observe: Any) -> None:
    """Exit handlers of what was imported before come after: these empty what the program kept."""
    ring = observe(SHORT.format(before="kept.clear", after="int")).main
    (told,) = ring.all("holder")
    assert (told["name"], told["items"]) == ("kept", 12) and told["items_per_minute"] > 0
    assert ring.one("bye")["ended_ns"] > 0


LOCAL = """
    import sys
    from time import monotonic_ns
    from hightide_agent import holders
    holders.UNEVEN = 1e9
    holders.SMALL_MINUTE = 0
    looks = holders.Holders(sys.modules["hightide_agent.start"].agent, over_time=True)
    def main():
        kept = []
        for turn in range({turns}):
            if turn < 3:
                kept.extend(bytearray(1 << 20) for _ in range(4))
            looks.scan(monotonic_ns(), [sys._getframe()], 60e9)
    main()
    """


@pytest.mark.parametrize("turns, rates", [(3, [True]), (4, [True, False])])
def test_what_three_scans_saw_is_told_and_held_against_the_fourth(observe: Any, turns: int, rates: List[bool]) -> None:
    """A run of two seconds has no fourth, and variables of its functions are gone at its end."""
    told = observe(LOCAL.format(turns=turns)).main.all("holder")
    assert [(record["name"], record["items_per_minute"] > 0) for record in told] == [("kept", grows) for grows in rates]


def test_the_line_is_known_at_the_end_too(observe: Any) -> None:
    """Python takes __file__ away from a script that has ended, before its exit handlers are called."""
    (told,) = observe(SHORT.format(before="int", after="int")).main.all("holder")
    lines = SHORT.splitlines()
    assert "kept.extend" in lines[told["line"] - 1]


def test_what_the_program_empties_as_it_ends_is_not_told(observe: Any) -> None:
    assert observe(SHORT.format(before="int", after="kept.clear")).main.all("holder") == []


def test_a_library_that_is_imported_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: List[bool] = []
    monkeypatch.setattr(builtins, "probe", lambda: seen.append(_importing(sys._getframe(1))), raising=False)
    for place in ("site-packages", "project"):
        (tmp_path / place).mkdir()
        monkeypatch.syspath_prepend(str(tmp_path / place))
    (tmp_path / "site-packages" / "some_library.py").write_text("probe()\n")
    (tmp_path / "project" / "training_of_its_own.py").write_text("probe()\nimport some_library\n")
    importlib.import_module("training_of_its_own")
    assert seen == [False, True]


def test_what_a_variable_of_another_threads_context_holds_is_reached(observe: Any) -> None:
    script = """
        import contextvars, threading
        from hightide_agent.reach import walk
        from hightide_agent.roots import roots
        state = contextvars.ContextVar("state")
        state.set([1, 2, 3])
        def look():
            print([len(f.thing) for f in walk(roots([]), {}, 1 << 62) if f.name == "state" and type(f.thing) is list])
        thread = threading.Thread(target=look); thread.start(); thread.join()
        """
    assert observe(script).out == "[3]\n"


def test_no_fork_comes_while_our_thread_imports(observe: Any) -> None:
    """The child would wait for ever for a module whose lock a thread holds that it does not have."""
    script = """
        import os, signal, sys, threading, time
        reached = threading.Event()
        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name == "hightide_agent.reach" and threading.current_thread() is not threading.main_thread():
                    reached.set()
                    time.sleep(0.5)
        sys.meta_path.insert(0, Slow())
        start = sys.modules["hightide_agent.start"]
        type(start.agent.channel).scan_seq = lambda channel: 1  # as the engine asks
        reached.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            import hightide_agent.reach
            os._exit(7)
        print(os.waitpid(child, 0)[1] >> 8)
        """
    assert observe(script).out == "7\n"


def test_a_scan_that_goes_on_ends_before_the_program(observe: Any, tmp_path: Path) -> None:
    """Else Python throws the thread out of it, from within C++ of a framework, too, which aborts the process."""
    script = """
    import sys, time, threading
    watcher, begun = sys.modules["hightide_agent.start"].watcher, threading.Event()
    def look():
        begun.set()
        end = time.monotonic() + 1.5
        while time.monotonic() < end: pass
        open(%r, "w").close()
    watcher._look = look
    begun.wait()
    """
    whole = tmp_path / "whole"
    observe(script % str(whole))
    assert whole.exists()


def test_an_iterator_of_a_type_that_is_not_ready_is_passed(observe: Any) -> None:
    """What co_positions() gives has a type without bases before Python 3.12."""
    script = """
    import sys
    from hightide_agent.holders import Holders
    from hightide_agent.measure import Measure
    agent = sys.modules["hightide_agent.start"].agent
    def main():
        positions = getattr(main.__code__, "co_positions", list)()
        holders = Holders(agent)
        for step in range(6):
            kept.append((positions, bytearray(100_000)))
            holders.scan(step, [sys._getframe()], 1)
        Measure({}).add([positions])
    kept = []
    main()
    """
    assert [record["name"] for record in observe(script).main.all("holder")][:1] == ["kept"]
