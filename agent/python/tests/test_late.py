"""The agent comes into a program that runs already."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, List

from conftest import SOURCE
from ring import Ring, rings

BEGIN = """
import json, os, sys, threading, time
def begin(folder, heap="", **more):
    os.makedirs(folder, mode=0o700, exist_ok=True)
    sys.path.insert(0, %r)
    from hightide_agent import late
    sys.path.remove(%r)
    return late.begin({"HIGHTIDE_CHANNELS": folder, **more}, heap, "a test")
def until(done):
    end = time.monotonic() + 60
    while not done() and time.monotonic() < end: time.sleep(0.01)
""" % (str(SOURCE), str(SOURCE))


def run(home: Path, text: str) -> Any:
    """Run a program that nobody observes at first; what it printed, as JSON."""
    program = home / "program.py"
    program.write_text(BEGIN + textwrap.dedent(text))
    ours = ("HIGHTIDE", "PYTHONPATH", "LD_PRELOAD")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, str(program)], env=env, cwd=home, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def told(folder: Path) -> List[Ring]:
    found = rings(folder)
    assert not [log for ring in found for log in ring.all("log")]
    return found


def test_frameworks_that_are_there_are_hooked(tmp_path: Path) -> None:
    (tmp_path / "lightning.py").write_text("__version__ = '7'\n")
    went = run(
        tmp_path,
        """
        import lightning
        before = threading.Thread(target=lambda: until(lambda: done))
        done = []
        before.start()
        print(json.dumps([begin("c"), "hightide_agent" in sys.modules, [p for p in sys.path if "agent" in p]]))
        done.append(1)
        """,
    )
    assert went == [True, True, []]
    (ring,) = told(tmp_path / "c")
    assert ring.one("hello")["role"] == "main" and ring.state == 2
    assert [f["name"] for f in ring.all("framework")] == ["lightning"]
    assert ring.one("fact") == {"type": "fact", "key": "brought_in", "value": "a test"}


def test_a_framework_that_is_being_imported_is_hooked_once_it_is(tmp_path: Path) -> None:
    (tmp_path / "lightning.py").write_text("import __main__ as m\nm.went = m.begin('c')\n__version__ = '8'\n")
    run(
        tmp_path,
        """
        import lightning
        from hightide_agent import imports
        until(lambda: not imports._unfinished)
        print(json.dumps(went))
        """,
    )
    (ring,) = told(tmp_path / "c")
    assert ring.one("framework")["version"] == "8"


def test_one_recording_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "lightning.py").write_text("__version__ = '9'\n")
    went = run(
        tmp_path,
        """
        import lightning
        print(json.dumps([begin("c"), begin("c"), begin("d"), threading.active_count()]))
        """,
    )
    assert went == [True, True, True, 1]
    for folder in ("c", "d"):
        (ring,) = told(tmp_path / folder)
        assert len(ring.all("hello")) == 1 and ring.one("hello")["role"] == "main"
        assert [f["version"] for f in ring.all("framework")] == ["9"]
    assert told(tmp_path / "d")[0].one("bye")


def test_children_inherit_what_was_there_and_ours(tmp_path: Path) -> None:
    went = run(
        tmp_path,
        """
        os.environ["PYTHONPATH"] = "/mine"
        more = {"PYTHONPATH": "/ours", "LD_PRELOAD": "/ours.so"}
        begin("c", **more)
        begin("c", **more)
        print(json.dumps([os.environ["PYTHONPATH"], os.environ["LD_PRELOAD"], os.environ.get("HIGHTIDE_HEAP_LATE")]))
        """,
    )
    assert went == ["/ours:/mine", "/ours.so", None]


def test_nothing_is_raised_where_there_is_no_place(tmp_path: Path) -> None:
    went = run(
        tmp_path,
        """
        os.rmdir("c") if os.path.isdir("c") else None
        open("c", "w").close()
        os.makedirs = lambda *a, **k: None
        print(json.dumps([begin("c"), begin("c", "/no/such/library.so")]))
        """,
    )
    assert went == [False, False]


def test_a_library_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    assert run(tmp_path, 'print(json.dumps(begin("c", "/no/such/library.so")))') is True
    (ring,) = rings(tmp_path / "c")
    assert "could not be loaded" in ring.one("log")["text"]
