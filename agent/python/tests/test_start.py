"""Start-up, children, and what must stay as it was."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import HOOK, observed_environment
from ring import rings

PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3")) or [Path(sys.executable)]


def usable(python: Path) -> bool:
    return int(python.parts[-3].split(".")[1]) >= 8 if ".pyenv" in python.parts else True


@pytest.mark.parametrize("python", [p for p in PYTHONS if usable(p)], ids=lambda p: p.parts[-3])
def test_every_python_says_hello_and_bye(observe: Any, python: Path) -> None:
    result = observe(
        """
        import sys
        print([sys.path, sorted(sys.modules)])
        """,
        "--token=secret", "--lr", "3", python=str(python),
    )  # fmt: skip
    ring = result.main
    hello = ring.one("hello")
    assert (hello["pid"], hello["role"], hello["main_thread"]) == (ring.pid, "main", ring.pid)
    assert hello["argv"][-3:] == ["--token=***", "--lr", "3"]
    assert ring.one("bye")["maxrss_bytes"] > 1 << 20 and ring.state == 2
    path, modules = ast.literal_eval(result.out)
    assert not any("agent/python" in place for place in path)
    assert "sitecustomize" not in modules
    code = "import sys; print(sorted(sys.modules))"
    plain = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout
    for costly in ("json", "ast", "threading", "typing", "inspect", "traceback"):
        assert costly not in modules or costly in plain, costly


def test_not_asked_nothing_happens(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(HOOK), "PATH": os.environ["PATH"]}
    code = "import sys; print([m for m in sys.modules if 'hightide' in m or m == 'sitecustomize'], len(sys.meta_path))"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] ")


def test_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.mine = __name__\n")
    folder = tmp_path / "c"
    folder.mkdir()
    env = observed_environment(folder)
    env["PYTHONPATH"] += os.pathsep + str(tmp_path)
    code = "import sitecustomize; print(mine, sitecustomize.__file__)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["sitecustomize", str(tmp_path / "sitecustomize.py")]
    assert len(rings(folder)) == 1


def test_own_sitecustomize_that_fails_is_reported_as_ever(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("1/0\n")
    folder = tmp_path / "c"
    folder.mkdir()
    env = observed_environment(folder)
    env["PYTHONPATH"] += os.pathsep + str(tmp_path)
    done = subprocess.run([sys.executable, "-c", "print(1)"], env=env, capture_output=True, text=True, check=False)
    assert "Error in sitecustomize" in done.stderr and "ZeroDivisionError" in done.stderr
    assert done.stdout == "1\n" and done.returncode == 0 and len(rings(folder)) == 1


INTERRUPTED = """
    import os, sys, time

    def heard(event, arguments):
        if event == "compile" and arguments[1] in ("<string>", None):  # evaluated: for Python that undoes the interrupt
            os.write(1, b"compiled %r" % (arguments[0],))

    sys.addaudithook(heard)
    os.kill(os.getpid(), 2)
    time.sleep(60)
    """


@pytest.mark.parametrize("python", [p for p in PYTHONS if usable(p)], ids=lambda p: p.parts[-3])
def test_interrupted_program_ends_by_the_signal(observe: Any, python: Path, tmp_path: Path) -> None:
    result = observe(INTERRUPTED, python=str(python), ok=False)
    assert result.code == -signal.SIGINT and "hightide" not in result.err, result.err
    assert result.main.one("exception")["class"] == "KeyboardInterrupt" and result.main.one("bye")
    plain = subprocess.run([str(python), str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stdout) == (result.code, result.out)  # a traceback may compile text of its own


def test_scan_beside_an_interrupt_is_not_noticed(observe: Any) -> None:
    """What our own thread evaluates after the interrupt would have Python forget it."""
    script = """
        import atexit, os, sys, time
        watcher = sys.modules["hightide_agent.start"].watcher
        atexit.register(lambda: (watcher._scan(None, 0), sys.stdout.write(repr("typing" in sys.modules))))
        os.kill(os.getpid(), {})
        time.sleep({})
        """
    done = observe(script.format(2, 60), ok=False)
    assert (done.code, done.out) == (-signal.SIGINT, "True"), done.err
    done = observe(script.format(0, 0))
    assert (done.code, done.out) == (0, "True"), done.err


def test_interrupt_before_the_first_line(tmp_path: Path) -> None:
    """While the agent starts, Python itself would call an interrupt a fatal error, and exit with 1."""
    package = tmp_path / "hightide_agent"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "start.py").write_text(
        "import os, time\n\ndef start():\n    os.kill(os.getpid(), 2)\n    os.write(1, b'on')\n"
    )
    (tmp_path / "hook").mkdir()
    shutil.copy(HOOK / "sitecustomize.py", tmp_path / "hook")
    env = {**observed_environment(tmp_path), "PYTHONPATH": str(tmp_path / "hook"), "HIGHTIDE_AGENT_PATH": ""}
    for code in ("raise AssertionError", "try: import time; time.sleep(60)\nexcept KeyboardInterrupt: pass"):
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "on", "")


OLD = sorted(Path.home().glob(".pyenv/versions/2.*/bin/python2")) + [p for p in PYTHONS if not usable(p)]


@pytest.mark.parametrize("python", OLD, ids=lambda p: p.parts[-3])
def test_python_that_is_too_old_runs_as_ever(tmp_path: Path, python: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.mine = __name__\n")
    env = observed_environment(tmp_path)
    code = "import sys; sys.stdout.write(repr([p for p in sys.path if 'hook' in p]) + getattr(sys, 'mine', 'none'))"
    for path, mine in ((env["PYTHONPATH"], "none"), (env["PYTHONPATH"] + os.pathsep + str(tmp_path), "sitecustomize")):
        done = subprocess.run([str(python), "-B", "-c", code], env={**env, "PYTHONPATH": path}, capture_output=True,
                              text=True, check=True)  # fmt: skip
        assert (done.stdout, done.stderr) == ("[]" + mine, "")
    assert rings(tmp_path) == []


@pytest.mark.parametrize("options", [["-I"], ["-S"], ["-E"]])
def test_isolated_python_runs_unobserved(observe: Any, options: list[str]) -> None:
    result = observe("print('ran')", options=options)
    assert result.out == "ran\n" and result.rings == []


@pytest.mark.parametrize("state", ["missing", "read-only", "full of nothing"])
def test_no_channel_folder_is_no_trouble(tmp_path: Path, state: str) -> None:
    folder = tmp_path / "c" if state != "full of nothing" else Path("/dev/null/x")
    done = subprocess.run([sys.executable, "-c", "print(2)"], env=observed_environment(folder), capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_children_of_every_kind_open_their_own(observe: Any) -> None:
    result = observe(
        """
        import ctypes, multiprocessing, os, subprocess, sys, time
        def child():
            pass
        if __name__ == "__main__":
            start = hightide = sys.modules["hightide_agent.start"]
            if os.fork() == 0:                       # Python's fork
                os._exit(0)
            os.wait()
            raw = ctypes.CDLL(None).fork()           # a fork behind Python's back
            if raw == 0:
                start.agent.record({"type": "probe"})
                os._exit(0)
            os.waitpid(raw, 0)
            for method in ("spawn", "fork"):
                p = multiprocessing.get_context(method).Process(target=child)
                p.start(); p.join()
            from multiprocessing import resource_tracker  # of spawn; who says hello as an orphan is not a child
            resource_tracker._resource_tracker._stop()
            subprocess.run(["sh", "-c", sys.executable + " -c pass"])
            sys.stdout.flush()
            os.execv(sys.executable, [sys.executable, "-c", "print('after')"])
        """
    )
    assert result.out == "after\n"
    pids = [r.pid for r in result.rings]
    main = result.main
    assert main.state == 1, "an exec leaves no bye"
    again = [r for r in result.rings if r.pid == main.pid]
    assert [r.path.name.endswith("-2.ring") for r in again] == [False, True] and again[1].one("bye")
    children = [r for r in result.rings if r.pid != main.pid]
    assert len(set(pids)) == len(children) + 1 and len(children) >= 5
    assert not main.all("probe") and sum(len(r.all("probe")) for r in children) == 1
    for child in children:
        assert child.all("hello")[-1]["role"] == "child" and child.all("hello")[-1]["pid"] == child.pid


def test_ranks_and_roles(observe: Any) -> None:
    env = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}
    hello = observe("pass", env=env).main.one("hello")
    assert (hello["rank"], hello["local_rank"], hello["world_size"], hello["role"]) == (3, 1, 8, "rank")
    hello = observe("pass", env={"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "1"}).main.one("hello")
    assert (hello["rank"], hello["world_size"], hello["role"]) == (0, 1, "main")
    hello = observe("pass", env={"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}).main.one("hello")
    assert (hello["rank"], hello["role"]) == (1, "rank") and "local_rank" not in hello


def test_uncaught_exception_is_told_and_unchanged(observe: Any) -> None:
    script = """
        import sys
        {}
        def f():
            raise ValueError("bad password=hunter2 here")
        f()
        """
    for hook in ("", "sys.excepthook = lambda *a: print('mine', a[0].__name__)"):
        result = observe(script.format(hook), ok=False)
        assert result.code == 1
        told = result.main.one("exception")
        assert (told["class"], told["text"], told["line"]) == ("ValueError", "bad password=*** here", 5)
        assert told["function"] == "f" and told["file"].endswith("script.py")
        assert result.out == ("mine ValueError\n" if hook else "")
        assert ("hightide" in result.err) is False
    assert not observe("import sys; sys.exit(3)", ok=False).main.all("exception")


def test_memory_error_becomes_an_oom(observe: Any) -> None:
    result = observe("x = bytearray(1 << 60)", ok=False)
    told = result.main.one("oom")
    assert (told["source"], told["line"], told["device"]) == ("MemoryError", 1, "cpu")
    assert "limit_bytes" not in told
    result = observe(
        "import resource as r; r.setrlimit(r.RLIMIT_AS, (2 << 30, 2 << 30))\nx = bytearray(3 << 30)", ok=False
    )
    told = result.main.one("oom")
    assert told["limit_bytes"] == 2 << 30 and 0 < told["mapped_bytes"] < 2 << 30


def test_closed_descriptors(observe: Any) -> None:
    result = observe(
        """
        import os, sys
        os.closerange(3, 4096)
        files = [open("own%d" % i, "wb+") for i in range(20)]
        agent = sys.modules["hightide_agent.start"].agent
        for i in range(50):
            assert agent.record({"type": "probe"})
        os.closerange(3, 4096)
        print(sum(os.path.getsize("own%d" % i) for i in range(20)))
        """
    )
    assert result.out == "0\n" and len(result.main.all("probe")) == 50


def test_import_machinery_is_left_as_it_was(observe: Any, tmp_path: Path) -> None:
    (tmp_path / "lightning").mkdir()
    (tmp_path / "lightning" / "__init__.py").write_text(
        "__version__ = '9.9'\nimport sys\nassert type(__spec__.loader).__name__ == 'SourceFileLoader', __spec__\n"
        "assert __loader__ is __spec__.loader\nfrom . import sub\n"
    )
    (tmp_path / "lightning" / "sub.py").write_text("value = 1\n")
    (tmp_path / "keras.py").write_text("raise ImportError('broken on purpose')\n")
    result = observe(
        """
        import importlib, importlib.util, pickle, sys
        sys.path.insert(0, ".")
        assert importlib.util.find_spec("lightning").origin.endswith("__init__.py")
        import lightning
        assert type(lightning.__spec__.loader).__name__ == "SourceFileLoader"
        assert lightning.__loader__ is lightning.__spec__.loader
        assert lightning.__spec__.submodule_search_locations and lightning.sub.value == 1
        importlib.reload(lightning)
        try:
            import keras
        except ImportError as e:
            assert str(e) == "broken on purpose"
        else:
            raise AssertionError
        try:
            import tensorflow
        except ModuleNotFoundError as e:
            assert e.name == "tensorflow"
        """
    )
    assert [(f["name"], f["version"]) for f in result.main.all("framework")] == [("lightning", "9.9")]


def test_what_is_being_imported_is_told_at_its_end(observe: Any, tmp_path: Path) -> None:
    """As haiku is, when it imports jax, whose adapter waits for it."""
    (tmp_path / "haiku.py").write_text(
        "from hightide_agent import imports\n"
        "imports.finder.wait('haiku', lambda module: print(module.whole))\nwhole = 1\n"
    )
    result = observe("import sys; sys.path.insert(0, '.'); import haiku; print('imported')")
    assert result.out == "1\nimported\n", result.err


@pytest.mark.parametrize("own", [0o700, 0o755])
def test_our_bytecode_is_kept_only_in_a_folder_of_ours(tmp_path: Path, own: int) -> None:
    home, folder = tmp_path / "home", tmp_path / "c"
    folder.mkdir(mode=0o700)
    shutil.copytree(HOOK.parent, home / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    home.chmod(own)
    (tmp_path / "theirs.py").write_text("value = 1\n")
    hook = str(home / "agent" / "hook")
    env = observed_environment(folder, PYTHONPATH=hook, HIGHTIDE_AGENT_PATH=hook, PYTHONDONTWRITEBYTECODE="1")
    code = "import sys, theirs; print(sys.dont_write_bytecode, sys.pycache_prefix, 'hightide_agent' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True None True\n", done.stderr
    assert bool(list(home.rglob("start.*.pyc"))) == (own == 0o700)
    assert not list(tmp_path.glob("__pycache__")) and not list(home.rglob("sitecustomize.*.pyc"))


def test_python_m_hightide_is_the_command(tmp_path: Path) -> None:
    program = tmp_path / "hightide"
    package = tmp_path / "elsewhere"  # not in a checkout, whose own program it would find
    shutil.copytree(HOOK.parent / "hightide", package / "hightide")
    env = {"PYTHONPATH": str(package), "PATH": "/nowhere"}
    command = [sys.executable, "-m", "hightide", "show", "a b"]
    missing = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert missing.returncode == 127 and missing.stderr.startswith("hightide: hightide's program is not in")
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 3\n')
    program.chmod(0o755)
    done = subprocess.run(
        command, env={**env, "HIGHTIDE_BINARY": str(program)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "show|a b|", "")


def test_ending_without_descriptors(observe: Any) -> None:
    """A program that ran out of descriptors is told of as it ended, and nothing of ours is printed."""
    result = observe(
        """
        import resource, sys
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        from hightide_agent import resident
        assert resident.rss() > 0
        held = []
        while True:
            held.append(open("/dev/null"))
        """,
        ok=False,
    )
    ended = result.main.one("exception")
    assert (ended["class"], "Too many open files" in ended["text"]) == ("OSError", True)
    assert result.code == 1 and "hightide" not in result.err
