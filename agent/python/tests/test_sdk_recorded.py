"""hightide.recorded with the engine itself: each call is a run, and is what it was without."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, List

from test_sdk_engine import PROGRAM, environment

STEPS = """
    import os, sys, threading, time
    import hightide

    @hightide.recorded(name="fill", folder="kept here", tags={"model": "bert"})
    def fill(mib):
        "Takes memory."
        taken = bytearray(mib << 20)            # line 8
        time.sleep(0.5)
        return len(taken)

    @hightide.recorded
    def fails(text):
        raise KeyError(text)
"""


def ran(folder: Path, program: str, *before: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(textwrap.dedent(STEPS) + textwrap.dedent(program))
    return subprocess.run([*before, sys.executable, "program.py"], cwd=folder, env={**environment(folder), **env},
                          capture_output=True, text=True, timeout=300, check=False)  # fmt: skip


def said(data: Path, *command: str) -> Any:
    done = subprocess.run([str(PROGRAM), *command, "--json", "--data-dir", str(data)], capture_output=True, text=True,
                          check=True)  # fmt: skip
    return json.loads(done.stdout)


def rows(report: Dict[str, Any], table: str) -> List[Dict[str, Any]]:
    from hightide._runs import rows

    return rows(report, table)


def test_each_call_is_a_run(tmp_path: Path) -> None:
    done = ran(
        tmp_path,
        """
        assert fill.__name__ == "fill" and fill.__doc__ == "Takes memory."
        assert fill(64) == 64 << 20
        assert hightide.report().spans[0]["span"] == "fill", "the newest run is found in its folder"
        assert fill(mib=32) == 32 << 20
        try:
            fails("as it was")
        except KeyError as error:
            print(error)
        assert not [key for key in os.environ if key in ("HIGHTIDE_RUN_ID", "LD_PRELOAD")], "nothing is left behind"
        """,
        AIRFLOW_CTX_DAG_ID="nightly", AIRFLOW_CTX_TASK_ID="fill",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "'as it was'\n"
    assert done.stderr.count("(hightide report ") == 3 and "--data-dir '" in done.stderr, done.stderr
    later, first = said(tmp_path / "kept here", "ls")["runs"]
    assert first["name"] == later["name"] == "fill" and first["state"] == later["state"] == "finished"
    assert first["tags"] == {"model": "bert", "dag": "nightly", "task": "fill"}, first
    report = said(tmp_path / "kept here", "report", first["id"])
    (span,) = rows(report, "spans")
    assert 60 << 20 < span["rss_rise"] < 90 << 20 and span["count"] == 1, span
    lines = rows(report, "span-lines")
    assert lines[0]["line"] == "program.py:8" and 60 << 20 < lines[0]["bytes"] < 70 << 20, lines
    (broken,) = said(tmp_path / "data", "ls")["runs"]
    assert broken["name"] == "fails" and broken["tags"]["raised"] == "KeyError", broken


def test_calls_at_once_are_one_run(tmp_path: Path) -> None:
    """Another call, also one in a thread or a child by fork, is a span of the run that the first began."""
    done = ran(
        tmp_path,
        """
        began, others = threading.Event(), threading.Event()

        @hightide.recorded(folder="kept here")
        def outer():
            began.set()
            others.wait()
            fill(8)
            if not (child := os.fork()):
                fill(24)
                os._exit(0)
            os.waitpid(child, 0)

        @hightide.recorded(folder="kept here")
        async def coroutine():
            fill(4)
            return 5

        @hightide.recorded(folder="kept here")
        def generator():
            yield from (1, 2)

        thread = threading.Thread(target=outer)
        thread.start()
        began.wait()
        fill(16)
        others.set()
        thread.join()
        import asyncio
        assert asyncio.run(coroutine()) == 5 and list(generator()) == [1, 2]
        """,
    )
    assert done.returncode == 0, done.stderr
    runs = said(tmp_path / "kept here", "ls")["runs"]
    assert sorted(run["name"] for run in runs) == ["coroutine", "generator", "outer"], runs
    (outer,) = [run["id"] for run in runs if run["name"] == "outer"]
    spans = [(row["span"], row["process"][:3], row["count"])
             for row in rows(said(tmp_path / "kept here", "report", outer), "spans")]  # fmt: skip
    assert spans == [("outer", "mai", 1), ("fill", "mai", 2), ("fill", "pid", 1)], spans


def test_under_run_a_call_is_a_span(tmp_path: Path) -> None:
    done = ran(tmp_path, "fill(16)\n", str(PROGRAM), "run", "--quiet", "--")
    assert done.returncode == 0 and not (tmp_path / "kept here").exists(), done.stderr
    (run,) = said(tmp_path / "data", "ls")["runs"]
    assert [row["span"] for row in rows(said(tmp_path / "data", "report", run["id"]), "spans")] == ["fill"]


def test_a_call_goes_on_where_nothing_records(tmp_path: Path) -> None:
    done = ran(tmp_path, "print(fill(1))\n", HIGHTIDE_BINARY=str(tmp_path / "none"))
    assert done.returncode == 0 and done.stdout == "1048576\n", done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("hightide: this program is not recorded"), done
    done = ran(tmp_path, "hightide.recorded(tags=5)(fails)\n")
    assert "TypeError: tags maps names to values" in done.stderr


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """It is said where the recording is instead."""
    (tmp_path / "kept here").write_text("a file")
    done = ran(tmp_path, "print(fill(1))\n")
    assert done.returncode == 0 and done.stdout == "1048576\n", done.stderr
    where = re.search(r"hightide: kept here cannot be written to: \w+ is recorded into (.+)\n", done.stderr)
    assert where, done.stderr
    report = re.search(r"\(hightide report (\w+) --data-dir (.+)\)", done.stderr)
    assert report and report[2] == where[1], done.stderr
    assert said(Path(where[1]), "report", report[1])["run"]["name"] == "fill"
    shutil.rmtree(Path(where[1]) / "runs" / report[1])
