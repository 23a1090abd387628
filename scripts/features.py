"""Write docs/features.md: each feature of the article on GPU Memory Profiler, what it is here, and which tests hold it.

    python3 scripts/features.py            writes the table
    python3 scripts/features.py --check    ends with 1 where a test is gone, or the table is not what this would write

A test is named as block:TITLE (a block of code of the article), script:NAME (cmd/hightide/testdata/script), py:NAME (a
test function in Python) or go:NAME (a test function in Go).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "features.md"
ARTICLE = ROOT / "agent" / "python" / "tests" / "testdata" / "article.md"

HEAD = """# The article's features, here

[GPU Memory Profiler](https://github.com/Silas-Asamoah/gpu-memory-profiler), today Stormlog, was presented in an article. This is each
feature that it names, what it is in hightide, and which tests hold it. `scripts/features.py` writes this table, and `--check`, which is part of
`make test`, finds tests that are gone. What the article lists as future is not in it.

| the article | here | tested by |
|---|---|---|
"""

# feature of the article, what it is here, its tests
FEATURES = [
    ("PyTorch and TensorFlow", "`hightide.compat.gpumemprof`, `.tfmemprof`; old names by `compat.install()`",
     ["block:PyTorch Memory Profiling / Basic Usage", "block:TensorFlow Memory Profiling / Basic Usage"]),
    ("Real-time monitoring", "`MemoryTracker`, `hightide monitor`, `track`",
     ["block:1. Real-Time Memory Monitoring", "script:monitor"]),
    ("Thresholds, alerts and callbacks", "the engine's alerts, `add_alert_callback`; `hightide track --warning-threshold`",
     ["py:test_alerts_of_a_tracker", "script:monitor"]),
    ("Leak detection: steady growth, memory that is not let go of", "`detect_memory_leaks`: the engine's findings, with line and bytes a step",
     ["block:2. Automatic Memory Leak Detection / Statistical Analysis"]),
    ("Leak detection: spikes", "the pattern of each curve, in `analyze_memory_patterns` and the report", ["py:test_patterns_of_a_file"]),
    ("Recommendations", "advice of each finding; else the lines that held most at the peak",
     ["block:Your First Memory Analysis", "block:Problem 1: \"CUDA out of memory\" Errors"]),
    ("Timeline, also interactive", "`plot_memory_timeline`: SVG and a page, PNG with matplotlib",
     ["block:4. Beautiful Visualizations / Memory Timeline", "py:test_pictures_are_kept"]),
    ("Function comparison", "`plot_function_comparison`", ["block:4. Beautiful Visualizations / Function Comparison"]),
    ("Memory heat map", "`create_memory_heatmap`", ["block:4. Beautiful Visualizations / Memory Heatmap"]),
    ("Interactive dashboard with updates", "`create_interactive_dashboard`: the engine's report, served to this machine as the run goes on",
     ["block:4. Beautiful Visualizations / Interactive Dashboard"]),
    ("Command line tools", "`hightide info`, `monitor`, `track`, `analyze`, with the same options", ["script:article", "script:monitor"]),
    ("Diagnostic bundle (Stormlog)", "`hightide diagnose`: one redacted archive", ["script:diagnose"]),
    ("Views on a terminal (Stormlog)", "`hightide top`: overview, frameworks, timeline, analysis, diagnostics, heap", ["go:TestFrames", "script:top"]),
    ("Zero code changes", "`hightide run -- python train.py`; `python -m hightide.compat train.py` for old names",
     ["script:run-python", "py:test_a_program_is_not_changed"]),
    ("Snapshots of memory", "`capture_snapshot`, a mark of the recording", ["block:1. Custom Memory Tracking"]),
    ("CUDA memory tracking: allocated, reserved, fragmentation", "the allocator's counters, by the agent; `Reading` at both ends of a call",
     ["block:Real PyTorch Example", "block:2. Memory Watchdog"]),
    ("Tensor life-cycle: created and freed", "`track_tensor`; `by_line()` of all tensors on GPUs",
     ["block:PyTorch-Specific Features / 2. Tensor Lifecycle Tracking", "py:test_tensors_tell_of_their_end"]),
    ("Function decorators, context managers", "spans of the recording",
     ["block:5. Context-Aware Profiling / Function Decorators", "block:5. Context-Aware Profiling / Context Managers"]),
    ("Model profiling", "`ProfiledModule`, `profile_model` for PyTorch and Keras",
     ["block:5. Context-Aware Profiling / Automatic Model Profiling", "block:Quick Start Guide / For TensorFlow Users"]),
    ("TensorFlow: memory growth setting", "the program's own call works; hightide changes no setting",
     ["block:TensorFlow-Specific Features / 1. TensorFlow Memory Growth"]),
    ("TensorFlow: graph execution, retracing", "a function that is traced again and again is a finding, with the argument that changed",
     ["go:TestTraced"]),
    ("Efficiency score of 0 to 10", "the report's score with its parts ([formula](observed.md))",
     ["block:Advanced Analysis Features / 1. Efficiency Scoring", "go:TestEfficiency"]),
    ("Performance correlation", "`generate_performance_insights`: findings, and time and memory of each named part",
     ["block:Advanced Analysis Features / 2. Performance Correlation"]),
    ("Fragmentation analysis", "`analyze_memory_patterns`, `analyze_fragmentation`; `hightide explain` and `replay`",
     ["block:Advanced Analysis Features / 3. Fragmentation Analysis", "script:explain", "script:replay"]),
    ("Watchdog: clean-up before memory runs out", "`MemoryWatchdog`; each clean-up is a mark of the recording",
     ["block:2. Memory Watchdog", "py:test_a_watchdog_notes_what_it_did"]),
    ("Several GPUs", "`GPUMemoryProfiler(device=\"cuda:1\")`; all GPUs are recorded", ["block:3. Multi-GPU Profiling"]),
    ("MLflow", "metrics of `get_summary()`", ["block:4. Integration with Experiment Tracking"]),
    ("Out of memory: what to do", "the allocator's snapshot is in the run, `hightide explain` names the lines",
     ["block:Problem 1: \"CUDA out of memory\" Errors", "script:explain"]),
    ("Less overhead", "where nothing is recorded, a decorated function is only counted and timed",
     ["block:Problem 3: Profiling Overhead", "py:test_nothing_is_recorded"]),
    ("Export", "`export_events`, `export_data`; `hightide export --telemetry`, `--csv`, `--json`, `--parquet`",
     ["py:test_alerts_of_a_tracker", "go:TestRoundTrip"]),
]  # fmt: skip


def exists(test: str) -> bool:
    """Whether there is such a test."""
    kind, _, name = test.partition(":")
    if kind == "block":
        listed = (ROOT / "agent" / "python" / "tests" / "article_blocks.py").read_text("utf-8")
        written = name.replace('"', '\\"')
        return (
            f'"{name}": Block(' in listed or f'"{written}": Block(' in listed or f"'{name}': Block(" in listed
        ) and (name.split(" / ")[-1] in ARTICLE.read_text("utf-8"))
    if kind == "script":
        return (ROOT / "cmd" / "hightide" / "testdata" / "script" / f"{name}.txtar").exists()
    if kind == "py":
        files = [
            *(ROOT / "agent" / "python" / "tests").glob("test_*.py"),
            *(ROOT / "scripts" / "tests").glob("test_*.py"),
        ]
        return any(re.search(rf"^\s*def {name}\(", file.read_text("utf-8"), re.MULTILINE) for file in files)
    files = [file for top in ("cmd", "internal") for file in (ROOT / top).rglob("*_test.go")]
    return any(re.search(rf"^func {name}\(", file.read_text("utf-8"), re.MULTILINE) for file in files)


def table() -> str:
    """The page."""
    rows = []
    for feature, here, tests in FEATURES:
        named = "; ".join(f"`{test.partition(':')[2]}`" for test in tests)
        rows.append(f"| {feature} | {here} | {named} |\n")
    return HEAD + "".join(rows)


def main() -> int:
    """Write the page, or check it."""
    gone = [
        f"{feature}: there is no test {test}" for feature, _, tests in FEATURES for test in tests if not exists(test)
    ]
    if "--check" not in sys.argv:
        TABLE.write_text(table(), "utf-8")
    elif not TABLE.exists() or TABLE.read_text("utf-8") != table():
        gone.append("docs/features.md is not up to date: python3 scripts/features.py")
    print(*gone, f"{len(FEATURES)} features, {len(gone)} faults", sep="\n")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
