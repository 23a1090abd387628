"""hightide.compat beyond the article: what it does with wrong input, without an engine, with files and limits."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict

import pytest

from test_sdk_engine import PROGRAM, Done, environment


def alone(folder: Path, program: str, **more: str) -> Done:
    """Run a program that nobody records."""
    (folder / "program.py").write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, env={**environment(folder), **more},
                          capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    return Done(done, folder / "data")


def test_alerts_of_a_tracker(tmp_path: Path) -> None:
    """A limit calls back, stands among the events, and what is exported is read by hightide analyze."""
    done = alone(
        tmp_path,
        """
        import threading, time
        from hightide.compat.gpumemprof import MemoryTracker
        heard = threading.Event()
        tracker = MemoryTracker(sampling_interval=0.02, enable_alerts=False)
        tracker.add_alert("rss > 128MiB", "mine")
        tracker.add_alert_callback(lambda event: (event.event_type, heard.set()))
        tracker.start_tracking()
        held = bytearray(b"x") * (160 << 20)
        assert heard.wait(60)
        time.sleep(0.3)
        tracker.stop_tracking()
        heard.clear()
        tracker.start_tracking(); tracker.stop_tracking()
        tracker.start_tracking(); time.sleep(0.2); tracker.stop_tracking()
        for file in ("events.json", "events.csv"):
            tracker.export_events(file)
        first = MemoryTracker(enable_alerts=False)
        with first:
            time.sleep(0.3)
        stats = first.get_statistics()
        assert stats["peak_memory"] > 128 << 20 and stats["alert_count"] == 0 and stats["sample_count"] > 5, stats
        assert stats["memory"] in ("RSS", "PSS"), stats
        assert [e.event_type for e in tracker.alerts] == ["mine"], tracker.alerts
        """,
    )
    assert done.code == 0, done.err
    for file in ("events.json", "events.csv"):
        found = analyzed(tmp_path / file)
        assert found["headline"]["peak"]["host_rss_bytes"] > 100 << 20, found["headline"]


def analyzed(file: Path) -> Dict[str, Any]:
    text = subprocess.run(
        [str(PROGRAM), "analyze", str(file), "--json"], capture_output=True, text=True, check=True
    ).stdout
    found: Dict[str, Any] = json.loads(text)
    return found


def test_a_watchdog_notes_what_it_did(tmp_path: Path) -> None:
    done = alone(
        tmp_path,
        """
        import time
        from hightide.compat.gpumemprof import MemoryWatchdog
        held = []
        watchdog = MemoryWatchdog(max_memory_mb=400, cleanup_threshold_mb=160)
        def fails():
            raise KeyError("mine")
        watchdog.add_cleanup_callback(fails)
        watchdog.add_cleanup_callback(held.clear)
        watchdog.start()
        for _ in range(20):
            held.append(bytearray(b"x") * (10 << 20))
            time.sleep(0.02)
        until = time.monotonic() + 60
        while not watchdog.actions and time.monotonic() < until:
            time.sleep(0.05)
        watchdog.stop()
        action = watchdog.actions[0]
        assert "rss > 160MiB: it was" in action.reason and action.freed > 50 << 20, action
        assert action.error == "KeyError: 'mine'" and watchdog.get_cleanup_stats()["cleanup_count"] >= 1
        """,
    )
    assert done.code == 0, done.err
    assert "hightide: a clean-up raised KeyError: 'mine'" in done.err
    assert [m for m in done.report()["marks"] if m["kind"] == "mark" and m["text"].startswith("clean-up, rss > 160MiB")]


def test_what_a_scan_still_reaches_is_waited_for(tmp_path: Path) -> None:
    """A scan of containers that grow keeps what it reaches until its end, which comes after the callbacks' here."""
    done = alone(
        tmp_path,
        """
        import threading, time
        from hightide.compat.gpumemprof import MemoryWatchdog
        watchdog = MemoryWatchdog(max_memory_mb=4000)
        watchdog.start()
        from hightide_agent.forks import work
        held = [bytearray(b"x") * (100 << 20)]
        begun, cleared = threading.Event(), threading.Event()
        def scan():
            with work:
                reached = list(held)
                begun.set()
                cleared.wait(60)
                time.sleep(0.3)
                del reached
        scanning = threading.Thread(target=scan)
        scanning.start()
        begun.wait(60)
        watchdog.add_cleanup_callback(held.clear)
        watchdog.add_cleanup_callback(cleared.set)
        action = watchdog.force_cleanup()
        scanning.join()
        watchdog.stop()
        assert action.freed > 90 << 20, action
        """,
    )
    assert done.code == 0, done.err


def test_tensors_tell_of_their_end() -> None:
    torch = pytest.importorskip("torch")
    from hightide.compat._tensors import TensorTracker

    tracker = TensorTracker()
    made = torch.ones(1 << 18)
    tracker.track_tensor(made, "made")
    assert tracker.get_active_tensors() == {"made": 1 << 20}
    del made
    first, last = tracker.get_tensor_lifecycle()
    assert (first.event, last.event, last.bytes, last.device) == ("created", "freed", 1 << 20, "cpu")
    assert str(last).startswith("Tensor freed: made, 1 MiB on cpu, test_compat.py:") and not tracker.alive
    for wrong in (5, "text"):
        with pytest.raises(TypeError, match="is not a tensor"):
            tracker.track_tensor(wrong)


def test_pictures_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hightide.compat._pictures import Curve, bars, heat_map, timeline

    line = timeline("Memory <1>", [Curve("RSS", [(0.0, 1e6), (1.0, 3e6)])], [("a & b", 0.0, 0.5)], [(0.5, 2e6)])
    assert (
        "Memory &lt;1&gt;" in line.svg
        and "a &amp; b" in line.svg
        and line.svg in line.html
        and "pointermove" in line.html
    )
    for picture in (
        line,
        bars("none", []),
        bars("many", [(f"f{n}", n, "") for n in range(40)]),
        heat_map("h", [], [], (0, 1)),
    ):
        assert Path(picture.save(tmp_path / "x.svg")).read_text() == picture.svg
    assert "and 16 more" in bars("many", [(f"f{n}", n, "") for n in range(40)]).svg
    with pytest.raises(ValueError, match=r"saved as \.svg, \.html or \.png"):
        line.save(tmp_path / "x.bmp")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        with pytest.raises(RuntimeError, match="a PNG needs matplotlib, which is not installed"):
            line.save(tmp_path / "x.png")
    else:
        assert Path(line.save(tmp_path / "x.png")).read_bytes().startswith(b"\x89PNG")


def test_pictures_show_their_scale() -> None:
    from hightide.compat._pictures import Curve, heat_map, timeline

    curves = [Curve("PSS", [(0.00521, 1.0), (9.4, 300 << 20)]), Curve("live heap", [(0.2, 5.0), (9.4, 200 << 20)])]
    line = timeline("Memory", curves)
    written = [shape.text for shape in line.shapes if shape.kind == "text"]
    assert [words for words in written if words.endswith(" s")] == ["0 s", "2 s", "4 s", "6 s", "8 s"], written
    assert {"0", "64 MiB", "256 MiB", "PSS", "live heap"} <= set(written), written
    legend = [s.points[0] for s in line.shapes if s.kind == "text" and s.text in ("PSS", "live heap")]
    ticks = [s.points[0] for s in line.shapes if s.kind == "text" and s.text.endswith("MiB")]
    assert max(y for _, y in legend) + 11 < min(y for _, y in ticks), "the legend stands above the axis"
    of_heat = heat_map("h", ["load"], [[1.0, 64 << 20]], (0.0, 9.0))
    assert {"0", "32 MiB", "64 MiB"} <= {s.text for s in of_heat.shapes if s.kind == "text"}


def test_patterns_of_a_file(tmp_path: Path) -> None:
    """A spike in readings that another tool saved."""
    file = tmp_path / "spike.json"
    high = {60: 900 << 20, 61: 900 << 20}
    rows = [
        {"timestamp_ns": (1_700_000_000 + n) * 10**9, "event_type": "sample", "pid": 5,
         "collector": "stormlog.cpu_tracker", "allocator_allocated_bytes": high.get(n, 200 << 20)} for n in range(120)
    ]  # fmt: skip
    file.write_text(json.dumps(rows))
    done = alone(
        tmp_path,
        """
        import json
        from hightide.compat.gpumemprof import MemoryAnalyzer
        for given in ("spike.json", json.load(open("spike.json"))):
            patterns = [p.pattern_type for p in MemoryAnalyzer().analyze_memory_patterns(given)]
            assert "spikes" in patterns, patterns
        assert MemoryAnalyzer().detect_memory_leaks("no-such-run") == []
        """,
    )
    assert done.code == 0, done.err
    assert "the recording cannot be asked: " in done.err


def test_nothing_is_recorded(tmp_path: Path) -> None:
    """Without the program hightide: one line, the program goes on, calls are counted, both ends are read."""
    done = alone(
        tmp_path,
        """
        from hightide.compat import gpumemprof as g
        @g.profile_function
        def step(n):
            return n + 1
        assert [step(n) for n in range(1000)][-1] == 1000
        sums = g.get_summary()["function_summaries"]["step"]
        assert sums["call_count"] == 1000 and sums["peak_memory"] is None and sums["total_time"] > 0, sums
        profiler = g.GPUMemoryProfiler()
        profile = profiler.profile_function(lambda: bytearray(b"x") * (64 << 20))
        assert profile.peak_memory - profile.before.rss > 60 << 20 and len(profile.value) == 64 << 20
        assert profiler.results[0].value is None  # a list of results keeps nothing of the program's alive
        try:
            profiler.profile_function(lambda: 1 // 0)
        except ZeroDivisionError:
            assert "ZeroDivisionError" in profiler.results[-1].error
        tracker = g.MemoryTracker()
        tracker.start_tracking(); tracker.stop_tracking()
        assert tracker.get_statistics()["peak_memory"] > 0 and tracker.get_events() == []
        g.MemoryWatchdog(100).start()
        visualizer = g.MemoryVisualizer(profiler)
        assert "polyline" in visualizer.plot_memory_timeline().svg
        assert "lambda" in visualizer.plot_function_comparison().svg
        assert g.MemoryAnalyzer().generate_optimization_report()["recommendations"] == []
        """,
        HIGHTIDE_BINARY=str(tmp_path / "none"),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.err.count("this program is not recorded: ") == 1 and "the watchdog watches nothing" in done.err
    assert done.err.count("nothing is recorded: profiles tell only what both ends of a call show") == 1


@pytest.mark.parametrize(
    "call, said",
    [
        ("MemoryTracker(sampling_interval=0)", "not a time to wait"),
        ("MemoryTracker(no_such=1)", "no argument 'no_such'"),
        ("MemoryTracker(warning_threshold=120)", "is not a percentage"),
        ("MemoryTracker().set_threshold('leak', 5)", "there is no threshold 'leak'"),
        ("MemoryTracker().export_events('x.xml')", "not xml"),
        ("MemoryWatchdog(max_memory_mb=-1)", "is not a threshold"),
        ("MemoryWatchdog(100, 200)", "swap them"),
        ("MemoryAnalyzer(sensitivity=2)", "is not a share"),
        ("MemoryVisualizer().plot_function_comparison(metric='x')", "there is no metric 'x'"),
        ("MemoryVisualizer().export_data(format='xml')", "not xml"),
        ("parse_memory('many')", "is not a size"),
        ("convert_bytes(1, 'B', 'pages')", "there is no unit 'pages'"),
        ("ProfiledModule(5)", "is not a torch.nn.Module"),
        ("profile_function(iter_of)", "is a generator"),
        ("GPUMemoryProfiler(device='gpu zero')", "is not a device"),
    ],
)
def test_wrong_input_is_one_line(call: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hightide.compat import _profiler, gpumemprof

    monkeypatch.setattr(_profiler, "begin", lambda *_: None)

    def iter_of() -> Any:
        yield 1

    with pytest.raises((ValueError, TypeError), match=said) as raised:
        eval(call, {**vars(gpumemprof), "iter_of": iter_of})
    assert "\n" not in str(raised.value)


def test_a_program_is_not_changed(tmp_path: Path) -> None:
    """python -m hightide.compat: the old names, also of their modules; the program's own arguments and name."""
    (tmp_path / "old.py").write_text(
        "import sys\nimport gpumemprof.tracker\nfrom tfmemprof.profiler import TFMemoryProfiler\n"
        "from stormlog import GPUMemoryProfiler\n"
        "print(__name__, sys.argv, GPUMemoryProfiler.__module__, TFMemoryProfiler.__module__)\n"
    )
    env = environment(tmp_path)
    command = [sys.executable, "-m", "hightide.compat"]
    done = subprocess.run(
        [*command, "old.py", "--x"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "__main__ ['old.py', '--x'] hightide.compat.gpumemprof hightide.compat.tfmemprof\n", (
        done.stderr
    )
    gone = subprocess.run([*command, "gone.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (gone.returncode, gone.stderr) == (3, "hightide: there is no program gone.py\n")
    text = "import json, sys\nsys.modules['gpumemprof'] = json\nfrom hightide import compat\ncompat.install()"
    late = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, check=True)
    assert late.stderr == "hightide: gpumemprof was imported before install(): it stays what it is\n"
