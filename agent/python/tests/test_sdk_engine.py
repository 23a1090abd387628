"""The SDK with the engine itself: what a program asks and is told, and what the report then says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "bin" / "hightide"
SOURCE = ROOT / "agent" / "python" / "src"


class Done:
    """A program that ended."""

    def __init__(self, done: subprocess.CompletedProcess[str], data: Path) -> None:
        self.code, self.out, self.err, self.data = done.returncode, done.stdout, done.stderr, data

    def report(self) -> Dict[str, Any]:
        """Of the newest run, once its engine has completed it: one that a program began ends after the program."""
        until = time.monotonic() + 60
        while self._said("ls", "--limit", "1")["runs"][0]["state"] == "running" and time.monotonic() < until:
            time.sleep(0.1)
        return self._said("report", "last")

    def _said(self, *command: str) -> Dict[str, Any]:
        text = subprocess.run([str(PROGRAM), *command, "--json", "--data-dir", str(self.data)],
                              capture_output=True, text=True, check=True).stdout  # fmt: skip
        found: Dict[str, Any] = json.loads(text)
        return found

    def rows(self, table: str) -> List[Dict[str, Any]]:
        from_report = self.report()
        return [
            {c["name"]: v for c, v in zip(t["columns"], row)}
            for t in from_report["tables"] if t["name"] == table for row in t["rows"]
        ]  # fmt: skip


def environment(folder: Path) -> Dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("HIGHTIDE")}
    env.update(HIGHTIDE_DATA=str(folder / "data"), HIGHTIDE_BINARY=str(PROGRAM), PYTHONPATH=str(SOURCE),
               XDG_CONFIG_HOME=str(folder), OMP_NUM_THREADS="1")  # fmt: skip
    return env


@pytest.fixture
def recorded(tmp_path: Path) -> Any:
    """recorded(program, *flags) runs it under `hightide run`."""

    def run(program: str, *flags: str, under: Optional[List[str]] = None) -> Done:
        (tmp_path / "program.py").write_text(textwrap.dedent(program))
        command = [str(PROGRAM), "run", "--quiet", *flags, "--"] if under is None else under
        done = subprocess.run([*command, sys.executable, "program.py"], cwd=tmp_path, env=environment(tmp_path),
                              capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
        return Done(done, tmp_path / "data")

    return run


def test_spans_of_a_run(recorded: Any) -> None:
    done = recorded(
        """
        import time
        import hightide
        assert hightide.init(name="from within", tags={"model": "bert", "by": "program"}) == hightide.init()
        with hightide.span("outer"):
            with hightide.span("encode"):
                held = b"x" * (64 << 20)        # line 7
                time.sleep(0.5)
        for _ in range(20000):
            with hightide.span("tight"):
                pass
        hightide.stop()
        hightide.span("left open").__enter__()
        """,
        "--tag", "by=command",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "init() was called before: this process is recorded as" in done.err
    assert "stop() changes nothing: this program runs under hightide" in done.err
    report = done.report()
    assert report["run"]["name"] == "from within"
    assert report["run"]["tags"] == {"model": "bert", "by": "command"}
    spans = {row["span"]: row for row in done.rows("spans")}
    assert spans["tight"]["count"] == 20000 and spans["left open"]["count"] == 1
    assert 60 << 20 < spans["encode"]["rss_rise"] < 80 << 20 and spans["encode"]["total"] >= 500_000_000
    lines = [row for row in done.rows("span-lines") if row["span"] == "encode"]
    assert lines[0]["line"] == "program.py:7" and 60 << 20 < lines[0]["bytes"] < 70 << 20
    assert not [row for row in done.rows("phases") if "encode" in row["phase"]]
    assert [bar["name"] for bar in report["phases"] if bar["phase"] == "user"].count("encode") == 1


def test_asked_while_it_runs(recorded: Any) -> None:
    done = recorded(
        """
        import time
        import hightide
        with hightide.peak() as first:
            high = b"x" * (96 << 20)            # line 5
            time.sleep(0.4)
            del high
        with hightide.peak("second") as second:
            low = b"x" * (24 << 20)             # line 9
            time.sleep(0.4)
        assert first.rss_exact and 96 << 20 < first.rss < 160 << 20, first
        assert not second.rss_exact and second.rss < first.rss - (40 << 20), second
        assert first.allocated is None and first.name == "peak at program.py:4", first
        assert [line.line for line in first.lines[:1]] == [5], first.lines
        assert [(line.line, round(line.bytes / 2**20)) for line in second.lines[:1]] == [(9, 24)], second.lines
        shot = hightide.snapshot("here")
        assert shot.rss > 24 << 20 and shot.allocated is None and shot.files == 0
        report = hightide.report()
        assert report.id == hightide.init() and "MiB" in report.text and "second" in report.text
        assert {row["span"] for row in report.spans} == {"second", "peak at program.py:4"}
        (run,) = hightide.runs()
        assert (run.id, run.state) == (report.id, "running") and run.start_wall_ns > 1e18
        html = report._repr_html_()
        assert html.startswith("<iframe srcdoc=") and "src=&quot;http" not in html
        try:
            hightide.report("no such run")
        except RuntimeError as error:
            print(error)
        """
    )
    assert done.code == 0, done.err
    assert "no such run" in done.out
    report = done.report()
    assert {"kind": "mark", "text": "here"}.items() <= next(m for m in report["marks"] if m["kind"] == "mark").items()
    # What was asked in between is not part of the run: nothing but the program took memory.
    assert [p["role"] for p in report["processes"]] == ["main"], report["processes"]
    assert not [row for row in report_lines(report) if "hightide/_" in row["file"]], "our own lines are told as such"


def report_lines(report: Dict[str, Any]) -> List[Dict[str, Any]]:
    from hightide._runs import rows

    return [row for table in ("sites", "span-lines") for row in rows(report, table)]


def test_alerts_call_back(recorded: Any) -> None:
    done = recorded(
        """
        import threading
        import hightide
        heard, again = threading.Event(), []
        def fails(alert):
            again.append(alert)
            raise KeyError("mine")
        def hear(alert):
            assert alert.limit == "rss > 200MiB" and alert.value > 200 << 20
            heard.set()
        assert hightide.alert("rss > 200MiB", fails) and hightide.alert("rss > 200MiB", hear)
        assert hightide.alert("rss > 10GiB", lambda _: print("never"))
        try:
            hightide.alert("rss > 200")
        except ValueError as error:
            print(error)
        held = b"x" * (256 << 20)
        assert heard.wait(60) and len(again) == 1
        """
    )
    assert done.code == 0, done.err
    assert "'rss > 200' is not a limit that hightide can watch" in done.out and "never" not in done.out
    assert done.err.count("the callback of alert rss > 200MiB raised KeyError: 'mine'") == 1
    assert [f["kind"] for f in done.report()["findings"]].count("alert") == 1  # of both


def test_growth_per_step_is_found_by_the_marks(recorded: Any) -> None:
    done = recorded(
        """
        import time
        import hightide
        history = []
        for _ in range(120):
            history.append(bytearray(b"x") * (1 << 20))      # line 6
            time.sleep(0.02)
            hightide.step()
        """
    )
    report = done.report()
    assert report["headline"]["steps"] == 120
    leak = next(f for f in report["findings"] if f["kind"] == "leak")
    assert leak["line"] in (4, 6), leak
    assert abs(leak["bytes_per_step"] - 2**20) <= max(2 * leak["error_bytes"], 0.1 * 2**20), leak


def test_the_engine_dies_and_the_program_goes_on(recorded: Any) -> None:
    done = recorded(
        """
        import os, signal, time
        import hightide
        with hightide.span("before"):
            time.sleep(0.2)
        hightide.report()
        engine = os.getppid()
        os.kill(engine, signal.SIGKILL)
        while os.getppid() == engine:
            time.sleep(0.01)
        with hightide.span("after"):
            held = b"x" * (8 << 20)
        open("survived", "w").close()
        """
    )
    assert done.code == -9
    until = __import__("time").monotonic() + 60
    while not (done.data.parent / "survived").exists():
        assert __import__("time").monotonic() < until
        __import__("time").sleep(0.05)
    while not {"before", "after"} <= {row["span"] for row in done.rows("spans")}:
        assert __import__("time").monotonic() < until  # the program may still be ending
        __import__("time").sleep(0.2)


def test_imagine_a_function(recorded: Any) -> None:
    pytest.importorskip("torch")
    done = recorded(
        """
        import sys
        import hightide

        def train(batch, fails=False):
            import torch
            if fails:
                raise KeyError("mine")
            model = torch.nn.Linear(1000, 1000).cuda()
            optimizer = torch.optim.SGD(model.parameters())
            for _ in range(6):
                model(torch.ones(batch, 1000, device="cuda")).sum().backward()
                optimizer.step()
            figures = hightide.figures()
            assert figures["hightide/peak_allocated"] > figures["hightide/allocated"] > 4_000_000, figures

        def follow():
            import torch
            chosen = int((torch.randn(1000, device="cuda") > 0).sum())
            torch.zeros(chosen, 1000, device="cuda")

        if __name__ == "__main__":
            depends = hightide.imagine(follow, gpu="a10")
            assert not depends and depends.verdict == "conditional", depends
            assert len(depends.conditions) == 1 and "program.py:19 is " in depends.conditions[0], depends.conditions
            small = hightide.imagine(train, 64, gpu="a10")
            assert small and small.verdict == "fits" and small.gpu == "a10" and small.peak_bytes < 2 << 30, small
            assert 9 in [l.line for l in small.lines if l.file.endswith("program.py")], small.lines
            large = hightide.imagine(train, 8 << 20, gpu="a10", memory="2GiB")
            assert not large and large.verdict == "oom" and large.headroom_bytes is None, large
            set_up = hightide.imagine(train, 64, settings={"alloc_conf": "expandable_segments:True", "name": "set up"})
            assert set_up and hightide.runs()[0].id == set_up.run and hightide.runs()[0].name == "set up", set_up
            sys.modules["cloudpickle"] = None  # as where it is not installed
            for wrong, call in (ValueError, lambda: hightide.imagine(train, 1, gpu="no-such-gpu")), (
                RuntimeError, lambda: hightide.imagine(train, 1, fails=True)), (
                ValueError, lambda: hightide.imagine(train, 1, settings={"steps": "some"})), (
                ValueError, lambda: hightide.imagine(lambda: None)):
                try:
                    call()
                except wrong as error:
                    print(error)
                else:
                    sys.exit("no error")
        """,
        under=[],
    )
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert (
        "no-such-gpu" in lines[0] and "KeyError" in lines[1] and "steps some" in lines[2] and "cloudpickle" in lines[3]
    ), lines


def test_init_starts_an_engine(recorded: Any) -> None:
    """A program that nobody recorded: two runs one after the other, with spans, lines and steps."""
    done = recorded(
        """
        import os, time
        from importlib.util import find_spec
        import hightide
        before = dict(os.environ)
        first = hightide.init(name="first", tags={"model": "bert"})
        assert first and hightide.init() == first
        with hightide.span("encode"):
            held = b"x" * (64 << 20)            # line 9
            time.sleep(0.3)
        for _ in range(10):
            time.sleep(0.01)
            hightide.step()
        pid = os.fork()
        if pid == 0:
            hightide.stop()
            with hightide.span("child's"):
                time.sleep(0.1)
            os._exit(0)
        os.waitpid(pid, 0)
        hightide.stop()
        assert dict(os.environ) == before
        report = hightide.report()
        assert report.id == first and report.data["headline"]["steps"] == 10
        spans = {row["span"]: row for row in report.spans}
        assert set(spans) == {"encode", "child's"} and spans["encode"]["rss_rise"] > 60 << 20, spans
        assert [row["line"] for row in report.rows("span-lines") if row["span"] == "encode"] == ["program.py:9"]
        assert "span-lines" in report.tables
        for ask in (report.rows, *([report.to_pandas] if find_spec("pandas") else [])):
            try:
                ask("nosuch")
                raise AssertionError("a table that is not there")
            except KeyError as error:
                assert "no table 'nosuch'; it has " in str(error) and "span-lines" in str(error), error
        with hightide.span("unrecorded"):
            pass
        second = hightide.init(name="second")
        with hightide.span("again"):
            time.sleep(0.1)
        hightide.stop()
        hightide.stop()
        assert [row["span"] for row in hightide.report().spans] == ["again"]
        assert [run.id for run in hightide.runs()] == [second, first] and hightide.runs()[1].tags == {"model": "bert"}
        """,
        under=[],
    )
    assert done.code == 0, done.err
    first, child = done.err.splitlines()
    assert "init() was called before: this process is recorded as" in first
    assert child == "hightide: stop() changes nothing in a forked child: its parent's recording goes on"


def test_an_engine_that_dies_is_told_of_and_followed_by_another(recorded: Any) -> None:
    done = recorded(
        """
        import os, signal, time
        import hightide
        from hightide import _session
        first = hightide.init()
        with hightide.span("before"):
            time.sleep(0.1)
        engine = _session._began.pid
        os.kill(engine, signal.SIGKILL)
        while os.path.exists("/proc/%d" % engine) and "\\nState:\\tZ" not in open("/proc/%d/status" % engine).read():
            time.sleep(0.01)
        with hightide.span("meanwhile"):
            pass
        second = hightide.init()
        assert second != first
        with hightide.span("after"):
            time.sleep(0.1)
        hightide.stop()
        assert [row["span"] for row in hightide.report(second).spans] == ["after"]
        print(first)
        """,
        under=[],
    )
    assert done.code == 0, done.err
    (line,) = done.err.splitlines()
    assert line.endswith("is gone; what it recorded is kept, and a new run begins")
    assert "before" in subprocess.run([str(PROGRAM), "show", done.out.strip(), "--data-dir", str(done.data)],
                                      capture_output=True, text=True, check=True).stdout  # fmt: skip


def test_a_program_that_just_ends_is_recorded_to_its_end(recorded: Any) -> None:
    import time

    done = recorded(
        """
        import hightide
        print(hightide.init())
        held = b"x" * (32 << 20)
        with hightide.span("last"):
            pass
        hightide.span("left open").__enter__()
        raise SystemExit(3)
        """,
        under=[],
    )
    assert done.code == 3, done.err
    until = time.monotonic() + 60
    while {"last", "left open"} != {row["span"] for row in done.rows("spans")}:
        assert time.monotonic() < until
        time.sleep(0.1)
