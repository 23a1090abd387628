"""scripts/gpu, where no GPU is: on an imaginary one, which must agree with itself and be called imagined."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HARDWARE = ROOT / "bench" / "hardware"
sys.path[:0] = [str(ROOT / "bench"), str(HARDWARE)]
import card  # noqa: E402
import sections  # noqa: E402
import table  # noqa: E402

from common import PYTHON  # noqa: E402


def gpu(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in (ROOT / "scripts" / "gpu", *words)]
    return subprocess.run(command, env={**os.environ, "PYTHON": str(PYTHON)}, capture_output=True, text=True)


def figures(told: dict[str, Any], section: str) -> dict[str, Any]:
    return {figure["name"]: figure["here"] for figure in told["sections"][section]["figures"]}


def test_on_an_imaginary_gpu(tmp_path: Path) -> None:
    done = gpu("--imagined", "a10", "--only", "nvml", "graphs", "calibrate", "run", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    path = tmp_path / "gpu.imagined.json"
    told = json.loads(path.read_text())
    assert told["label"] == "imagined" and "No GPU was here" in told["note"]
    assert told["gpu"] == "NVIDIA A10"
    states = {name: section["state"] for name, section in told["sections"].items()}
    assert states == {"machine": "done", "nvml": "done", "graphs": "done", "calibrate": "not here", "run": "done"}
    for name, least in (("nvml", 5), ("graphs", 30)):
        both = list(table.pairs(told["sections"][name]))
        assert len(both) >= least and all(here == twin for _, here, twin in both), both
    answers = figures(told, "nvml")
    assert (
        answers["nvmlDeviceGetName"] == "NVIDIA A10" and answers["cuMemGetInfo, total"] == answers["cuDeviceTotalMem"]
    )
    run = figures(told, "run")
    assert run["allocated, by the program"] == 1 << 30
    assert all(
        run[f"{what}, by hightide"] == run[f"{what}, by the program"] for what in ("allocated", "reserved", "used")
    )
    refused = gpu("--table", path)
    assert refused.returncode == 2 and "only what a card has shown" in refused.stderr


def test_what_has_no_time_is_said(tmp_path: Path) -> None:
    done = gpu("--imagined", "a10", "--only", "nvml", "--limit", "0.1", "--out", tmp_path)
    assert done.returncode == 1
    assert json.loads((tmp_path / "gpu.imagined.json").read_text())["sections"]["nvml"]["state"] == "out of time"


def test_without_a_gpu() -> None:
    if sections.driver_sees_cards():
        pytest.skip("there is a GPU here")
    done = gpu()
    assert done.returncode == 4
    assert done.stderr == (
        "scripts/gpu: there is no NVIDIA GPU here; run it on a machine that has one, or see it work: scripts/gpu --imagined a10\n"
    )


PROBE = """
import sys, time
sys.path.insert(0, sys.argv[2])
from card import Figures
figures = Figures(sys.argv[1])
figures.say("one", 1, "bytes", "here")
figures.part("two", lambda: 1 / 0)
time.sleep(1000)
"""


def test_a_probe_that_hangs_is_ended_and_leaves_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARDWARE_BEGUN", raising=False)
    path = tmp_path / "figures"
    running = sections.Running([sys.executable, "-c", PROBE, path, HARDWARE], {}, path, 600.0)
    while not path.exists() or "two" not in path.read_text():
        assert running.process.poll() is None
    running.limit = 0.0
    ended = running.end()
    assert running.process.returncode is not None and ended.why.startswith("out of time")
    assert [figure["name"] for figure in ended.figures] == ["one", "two"]
    assert ended.figures[1]["unit"] == "failure" and "ZeroDivisionError" in ended.figures[1]["value"]


def test_of_a_probe_that_ran_twice_the_first_run_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures"
    for value in (1, 2):
        monkeypatch.delenv("HARDWARE_BEGUN", raising=False)
        card.Figures(str(path)).say("one", value, "bytes", "here")
        card.Figures(str(path)).say("of a child", value, "bytes", "here")
    monkeypatch.delenv("HARDWARE_BEGUN")
    found = sections.of_first_run(path)
    assert [(figure["name"], figure["value"]) for figure in found] == [("one", 1), ("of a child", 1)]


def figure(name: str, value: object, **conditions: object) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": "bytes", "source": "a test", "conditions": conditions}


def test_figures_of_a_card_go_into_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy, eager = ({"CUDA_MODULE_LOADING": way, "in_use_before": 7} for way in ("LAZY", "EAGER"))
    here = [figure("context", 500, **lazy), figure("context", 700, **eager), figure("alone", 1)]
    section = {
        "state": "done",
        "figures": table.joined(here, [figure("context", 500, **lazy), figure("context", 720, **eager)]),
    }
    assert [row.get("twin") for row in section["figures"]] == [500, 720, None]
    told = {"gpu": "NVIDIA T1", "label": "measured", "began": "2026-01-02T03:04:05Z", "hightide": "hightide 0.1.0 x",
            "sections": {"context": section}}  # fmt: skip
    measured, page = tmp_path / "gpu.json", tmp_path / "page.md"
    measured.write_text(json.dumps(told))
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    monkeypatch.setattr(table, "FIDELITY", page)
    assert table.write([measured]) == 0
    text = page.read_text()
    assert "| context | done | 2 | 1 | +20 B: context |" in text and "old" not in text
    assert text.startswith("before\n") and text.endswith("\nafter\n")
